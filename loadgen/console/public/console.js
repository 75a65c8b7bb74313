/** The console: what the controller tells over its event stream becomes tiles, charts and tables; buttons become calls. */
(() => {
  const byId = (id) => document.getElementById(id);
  const charts = LoadCharts.create(byId("charts"));
  const state = {
    workers: [],
    runs: [],
    seconds: [],
    mostSeconds: Infinity,
    shownId: null,
    token: null,
    isFormFilled: false,
    isStarting: false,
    waitAwake: false,
  };

  /** The token comes behind # of the address, which no server ever sees, or by hand; it stays until the tab is closed. */
  function takeToken() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) {
      sessionStorage.setItem("token", given);
      history.replaceState(null, "", location.pathname);
    }
    state.token = sessionStorage.getItem("token");
  }

  async function call(method, path, body) {
    const headers = { authorization: `Bearer ${state.token}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.ok) return response;
    const text = await response.text();
    let message = text;
    try {
      message = JSON.parse(text).error ?? text;
    } catch {
      // no JSON: shown as it is
    }
    throw Object.assign(new Error(message), { status: response.status });
  }

  // ---- events

  /** Workers are told every second: a stream that is silent this long is one that broke without a word (a cut network, a laptop that slept). */
  const SILENCE_MS = 10_000;

  async function listen() {
    let pauseMs = 500;
    for (;;) {
      try {
        const response = await call("GET", "/console/events");
        setLink(true);
        pauseMs = 500;
        await readEvents(response.body);
      } catch (error) {
        if (error.status === 401) {
          setLink(false);
          return askToken(state.token === null ? "" : "This token is not the controller's.");
        }
      }
      setLink(false);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      pauseMs = Math.min(5000, 2 * pauseMs);
    }
  }

  async function readEvents(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (;;) {
        const { done, value } = await within(SILENCE_MS, reader.read());
        if (done) return;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const [, event, data] = /^event: (.*)\ndata: (.*)$/s.exec(part) ?? [];
          if (event !== undefined) onEvent(event, JSON.parse(data));
        }
      }
    } finally {
      reader.cancel().catch(() => undefined);
    }
  }

  /** Waits for a promise, but no longer than this. */
  async function within(ms, promise) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("nothing came")), ms);
    });
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  function onEvent(event, data) {
    if (event === "snapshot") {
      state.mostSeconds = data.mostChartSeconds;
      state.workers = data.workers;
      state.runs = data.runs;
      const last = data.runs.at(-1);
      // Who looks at an old measurement goes on looking at it.
      if (
        state.shownId === null ||
        state.shownId === last?.id ||
        !data.runs.some(({ id }) => id === state.shownId)
      )
        showRun(last ?? null, data.seconds);
      // Only when the page opens: later the form is its user's.
      const current = state.isFormFilled ? undefined : running();
      if (current !== undefined)
        LoadForm.show(current.spec, current.changes.at(-1)?.shape ?? current.spec.shape);
      state.isFormFilled = true;
      renderRuns();
      renderWorkers();
    } else if (event === "second") {
      if (newest()?.id !== state.shownId) return;
      // Tiles and tables show the newest; the charts keep them all.
      state.seconds = [data];
      charts.addSecond(data, state.mostSeconds);
      renderNow();
    } else if (event === "workers") {
      state.workers = data;
      renderWorkers();
    } else if (event === "run") {
      const index = state.runs.findIndex(({ id }) => id === data.id);
      if (index < 0) state.runs.push(data);
      else state.runs[index] = data;
      if (index < 0) showRun(data, []);
      renderRuns();
      renderNow();
    }
  }

  const newest = () => state.runs.at(-1);
  const running = () => (newest()?.state === "running" ? newest() : undefined);
  const shownRun = () => state.runs.find(({ id }) => id === state.shownId);

  function showRun(run, seconds) {
    state.shownId = run?.id ?? null;
    state.seconds = [...seconds];
    charts.setObjective(run?.spec.sloBoundMs ?? null);
    charts.setSeconds(seconds);
    renderNow();
  }

  // ---- rendering

  function element(name, properties = {}, ...children) {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children.filter((child) => child !== null));
    return node;
  }

  const fixed = (value, digits = 1) => (value === null || value === undefined ? "-" : value.toFixed(digits));

  function setLink(isOn) {
    byId("link").dataset.state = isOn ? "on" : "off";
    byId("link").textContent = isOn ? "live" : "offline";
  }

  const rate = (perS) => `${Number(perS.toFixed(1))}/s`;
  const atMost = ({ maxRatePerS }) => (maxRatePerS > 0 ? `, at most ${rate(maxRatePerS)}` : "");

  function describe(shape) {
    switch (shape.kind) {
      case "users":
        return shape.thinkMaxS > 0 ? `${shape.users} users` : `${shape.users} in flight${atMost(shape)}`;
      case "ramp":
        return `ramp ${rate(shape.fromPerS)} to ${rate(shape.toPerS)} in ${shape.overS} s`;
      case "steps":
        return `${shape.steps.length} steps up to ${rate(Math.max(...shape.steps.map(({ ratePerS }) => ratePerS)))}`;
      case "recorded":
        return `${shape.arrivals} recorded arrivals`;
      default:
        return `${shape.kind} ${rate(shape.ratePerS)}`;
    }
  }

  function outcome(run) {
    if (run.state === "running") return ["running", ""];
    if (run.result === null) return [run.state, "bad"];
    if (run.result.stop?.interrupted) return ["ended early", "bad"];
    if (!run.result.valid) return ["invalid", "bad"];
    if (run.result.stop?.finding) return ["stopped by its rule", "bad"];
    const share = run.result.total.ok / run.result.total.planned;
    const quantile = run.spec.sloQuantile;
    if (quantile === undefined) return ["finished", ""];
    return share >= quantile - 1e-9 ? ["objective held", "good"] : ["objective broken", "bad"];
  }

  function why(run) {
    if (run.error !== null) return run.error;
    const { stop, invalidReasons = [], warnings = [] } = run.result ?? {};
    // An interruption is the first reason already.
    const stopped = stop?.interrupted ? undefined : stop?.reason;
    return [stopped, ...invalidReasons, ...warnings].filter(Boolean).join("; ");
  }

  function renderNow() {
    const run = shownRun();
    const last = state.seconds.at(-1);
    const bound = run?.spec.sloBoundMs;
    const isLate = last?.p95Ms > bound;
    const tiles = [
      ["requests/s", fixed(last?.ratePerS)],
      ["p95, ms", fixed(last?.p95Ms), last?.p95Ms == null ? "" : isLate ? "bad" : "good"],
      ["p50 / p99, ms", last ? `${fixed(last.p50Ms, 0)} / ${fixed(last.p99Ms, 0)}` : "-"],
      [
        "failed + shed /s",
        last ? String(last.failed + last.shed) : "-",
        last?.failed + last?.shed > 0 ? "bad" : "",
      ],
      ["users", last?.users == null ? "-" : String(last.users)],
      ["in flight", last ? String(last.inFlight) : "-"],
      ["lateness p99, ms", fixed(last?.latenessP99Ms, 2)],
    ];
    byId("tiles").replaceChildren(
      ...tiles.map(([label, value, tone = ""]) =>
        element(
          "div",
          { className: "tile" },
          element("b", { className: tone, textContent: value }),
          element("span", { textContent: label }),
        ),
      ),
    );
    byId("shown").textContent =
      run === undefined
        ? "Nothing has been measured yet: choose a load and press Start."
        : `${describe(run.changes.at(-1)?.shape ?? run.spec.shape)} on ${run.spec.modelName}, ${new Date(run.startedUnixMs).toLocaleString()}: ${outcome(run)[0]}`;
    renderReplicas(last);
    renderControls();
  }

  function renderControls() {
    const run = running();
    byId("status").textContent =
      run === undefined
        ? `idle, ${state.workers.length} ${state.workers.length === 1 ? "worker" : "workers"}`
        : `${state.seconds.at(-1)?.phase ?? "preparing"}: ${describe(run.changes.at(-1)?.shape ?? run.spec.shape)} on ${run.spec.modelName}`;
    byId("start").disabled = run !== undefined || state.isStarting;
    byId("change").disabled = byId("stop").disabled = run === undefined;
    for (const id of ["fixed", "judgement"]) byId(id).disabled = run !== undefined;
  }

  function table(id, head, rows, nothing) {
    const cells = head.map((name) => element("th", { scope: "col", textContent: name }));
    const body =
      rows.length > 0
        ? rows
        : [
            element(
              "tr",
              {},
              element("td", { className: "empty", textContent: nothing, colSpan: head.length }),
            ),
          ];
    byId(id).replaceChildren(
      element("thead", {}, element("tr", {}, ...cells)),
      element("tbody", {}, ...body),
    );
  }

  const row = (...cells) =>
    element(
      "tr",
      {},
      ...cells.map((cell) => (cell instanceof Node ? cell : element("td", { textContent: cell }))),
    );

  function renderWorkers() {
    byId("worker-count").textContent = String(state.workers.length);
    // A thousand rows help nobody: the latest ones first.
    const shown = [...state.workers]
      .sort((one, other) => other.latenessP99Ms - one.latenessP99Ms)
      .slice(0, 50);
    // Once seen it stays: between two measurements nobody waits.
    state.waitAwake ||= state.workers.some(({ busyWaitShare }) => busyWaitShare > 0);
    const { waitAwake } = state;
    table(
      "workers",
      [
        "worker",
        "state",
        "sent /s",
        "in flight",
        "late p99, ms",
        "loop p99, ms",
        "CPU, %",
        ...(waitAwake ? ["waiting awake, %"] : []),
        "MB/s",
        "RAM, MB",
      ],
      shown.map((worker) =>
        row(
          worker.name,
          element("td", { className: "text", textContent: worker.state }),
          fixed(worker.ratePerS),
          String(worker.inFlight),
          fixed(worker.latenessP99Ms, 2),
          fixed(worker.loopDelayP99Ms, 2),
          fixed(100 * worker.cpuShare, 0),
          ...(waitAwake ? [fixed(100 * worker.busyWaitShare, 0)] : []),
          fixed(worker.wireMbPerS),
          fixed(worker.rssMb, 0),
        ),
      ),
      "No worker is connected.",
    );
    byId("workers").querySelectorAll("th")[1].classList.add("text");
    renderControls();
  }

  function renderReplicas(last) {
    const entries = Object.entries(last?.perAddress ?? {});
    const total = entries.reduce((sum, [, count]) => sum + count, 0);
    table(
      "replicas",
      ["address", "answered", "share, %"],
      entries.map(([address, count]) =>
        row(address, String(count), total === 0 ? "-" : fixed((100 * count) / total)),
      ),
      "No answers yet.",
    );
  }

  function renderRuns() {
    const rows = [...state.runs]
      .reverse()
      .slice(0, 100)
      .map((run) => {
        const [text, tone] = outcome(run);
        const { total, response } = run.result ?? {};
        const show = element("button", { className: "small", textContent: "show", title: `Show ${run.id}` });
        show.addEventListener("click", () => void open(run.id));
        const downloads = ["csv", "json", "hlog", "html"].map((format) => {
          const button = element("button", {
            className: "small",
            textContent: format,
            title: `Download ${run.id} as ${format}`,
          });
          button.addEventListener("click", () => void download(run.id, format));
          return button;
        });
        return row(
          new Date(run.startedUnixMs).toLocaleString(),
          element("td", {
            className: "text",
            textContent: `${describe(run.spec.shape)} on ${run.spec.modelName}`,
          }),
          element("td", { className: `text ${tone}`, textContent: text }),
          total && total.planned > 0 ? fixed((100 * total.ok) / total.planned, 2) : "-",
          fixed(response?.p95Ms),
          element("td", {}, show, " ", ...downloads.flatMap((button) => [button, " "])),
          element("td", { className: "why", textContent: why(run) }),
        );
      });
    // Who is on a button of the list stays there when the list changes.
    const focused = byId("history").contains(document.activeElement) ? document.activeElement.title : null;
    table("history", ["started", "load", "outcome", "in time, %", "p95, ms", "", "why"], rows, "None yet.");
    for (const index of [1, 2, 6]) byId("history").querySelectorAll("th")[index]?.classList.add("text");
    if (focused !== null)
      [...byId("history").querySelectorAll("button")].find(({ title }) => title === focused)?.focus();
  }

  async function open(id) {
    try {
      const { run, seconds } = await (await call("GET", `/console/runs/${encodeURIComponent(id)}`)).json();
      showRun(run, seconds);
      byId("charts").focus();
    } catch (error) {
      complain(error);
    }
  }

  async function download(id, format) {
    try {
      const response = await call("GET", `/console/runs/${encodeURIComponent(id)}/download/${format}`);
      const url = URL.createObjectURL(await response.blob());
      const [, name] = /filename="(.*)"/.exec(response.headers.get("content-disposition") ?? "") ?? [];
      element("a", { href: url, download: name ?? `load.${format}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      complain(error);
    }
  }

  // ---- controls

  function complain(error) {
    byId("form-error").textContent = error.message;
  }

  async function act(work) {
    byId("form-error").textContent = "";
    try {
      await work();
    } catch (error) {
      complain(error);
    }
  }

  byId("load-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running() === undefined && !state.isStarting) void act(startLoad);
  });
  /** A server that does not answer is waited for; one press is one measurement. */
  async function startLoad() {
    state.isStarting = true;
    renderControls();
    try {
      await call("POST", "/console/load", LoadForm.request());
    } finally {
      state.isStarting = false;
      renderControls();
    }
  }

  byId("change").addEventListener("click", () => {
    if (LoadForm.isValid())
      void act(() =>
        call("POST", `/console/load/${encodeURIComponent(running()?.id ?? "")}/change`, {
          shape: LoadForm.shape(),
        }),
      );
  });
  byId("stop").addEventListener(
    "click",
    () => void act(() => call("POST", `/console/load/${encodeURIComponent(running()?.id ?? "")}/stop`)),
  );
  byId("target").addEventListener("change", () => void act(loadModels));

  async function loadTargets() {
    const { targets } = await (await call("GET", "/console/targets")).json();
    byId("target").replaceChildren(
      ...targets.map((target) =>
        element("option", { value: target, textContent: target.replace("dns:///", "") }),
      ),
    );
    if (targets.length === 0)
      throw new Error("This controller has no target: start it with --target HOST:PORT to use the console.");
    await loadModels();
  }

  async function loadModels() {
    const target = byId("target").value;
    const { models } = await (
      await call("GET", `/console/models?target=${encodeURIComponent(target)}`)
    ).json();
    byId("model").replaceChildren(
      ...models.map((name) => element("option", { value: name, textContent: name })),
    );
    if (models.length === 0) throw new Error(`${target} has no model that is ready.`);
  }

  function askToken(error) {
    byId("login-error").textContent = error;
    if (!byId("login").open) byId("login").showModal();
  }

  byId("login-form").addEventListener("submit", () => {
    sessionStorage.setItem("token", byId("token").value.trim());
    byId("token").value = "";
    start();
  });
  byId("login").addEventListener("cancel", (event) => event.preventDefault());

  function start() {
    takeToken();
    if (state.token === null) return askToken("");
    void listen();
    void act(loadTargets);
  }

  renderNow();
  renderRuns();
  start();
})();
