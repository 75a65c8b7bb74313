/**
 * The console in a real browser against real processes: a controller, workers, a local Triton. CONSOLE_SCREENSHOTS=DIR keeps pictures of it.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { catalogue } from "../../model-repo/catalogue";
import { writeRepository } from "../../model-repo/write-repository";
import { LocalServer } from "../../targets/local-server";
import { Browser, type Page } from "./support/browser";
import { TcpProxy } from "./support/tcp-proxy";

const token = "token-of-this-test";
const screenshots = process.env["CONSOLE_SCREENSHOTS"];
const variant = catalogue[2]!;
let folder: string;
let server: LocalServer;
let browser: Browser;
let page: Page;
let controller: { readonly child: ChildProcess; readonly port: number; readonly httpPort: number };
const children: ChildProcess[] = [];

function start(file: string, args: readonly string[]): ChildProcess {
  const child = spawn(
    process.execPath,
    ["--import", "tsx", join(__dirname, "../../loadgen", file), ...args],
    {
      env: { ...process.env, LOADGEN_TOKEN: token },
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  children.push(child);
  return child;
}

async function startController(port = 0, httpPort = 0): Promise<typeof controller> {
  const child = start("controller-main.ts", [
    ...["--port", String(port), "--http-port", String(httpPort), "--state-dir", join(folder, "state")],
    ...["--target", server.grpcAddress, "--metrics-url", server.metricsUrl, "--max-rate", "500"],
  ]);
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: child.stdout! }).once("line", resolve),
  );
  return { child, ...(JSON.parse(line) as { port: number; httpPort: number }) };
}

const base = (): string => `http://127.0.0.1:${controller.httpPort}`;

/** Fills the form; the load is easy for any machine unless the test says otherwise. */
async function fill(values: Record<string, string | boolean>): Promise<void> {
  await page.read(`(() => {
    const form = document.getElementById("load-form");
    for (const [name, value] of Object.entries(${JSON.stringify(values)})) {
      const field = form.elements.namedItem(name);
      if (typeof value === "boolean") field.checked = value;
      else field.value = value;
      (field.dispatchEvent ? field : form.querySelector("[name=" + name + "]:checked")).dispatchEvent(new Event("change", { bubbles: true }));
    }
  })()`);
}

const click = (id: string): Promise<void> => page.read(`document.getElementById("${id}").click()`);
/** Presses Tab until this element has the focus. */
async function tabTo(id: string): Promise<void> {
  for (let presses = 0; presses < 100; presses++) {
    if ((await page.read<string>("document.activeElement.id")) === id) return;
    await page.press("Tab");
  }
  throw new Error(`Tab never comes to ${id}`);
}
const text = (selector: string): Promise<string> =>
  page.read(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ""`);
const picture = async (name: string): Promise<void> => {
  if (screenshots === undefined) return;
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot(join(screenshots, `${name}.png`), true);
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "console-"));
  await writeRepository([variant], join(folder, "repository"));
  server = await LocalServer.start({
    repository: join(folder, "repository"),
    modelName: variant.name,
    executor: "simulated-t4",
    timeDilation: 1,
    metricsIntervalMs: 1000,
  });
  controller = await startController();
  for (const name of ["worker-1", "worker-2"])
    start("worker-main.ts", ["--controller", `127.0.0.1:${controller.port}`, "--name", name]);
  browser = await Browser.start();
  page = await browser.open("about:blank");
  await page.viewport(1400, 1000);
}, 120_000);

afterAll(async () => {
  await browser.close();
  for (const child of children) child.kill("SIGKILL");
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("the console", () => {
  it("asks for the token, says when it is the wrong one, and opens with the right one, by keyboard alone", async () => {
    await page.go(`${base()}/`);
    await page.until(`document.getElementById("login").open`);
    for (const [attempt, isRight] of [
      ["nonsense", false],
      [token, true],
    ] as const) {
      await page.until(`document.activeElement.id === "token"`);
      await page.type(attempt);
      await page.press("Enter");
      if (!isRight)
        await page.until(`document.getElementById("login-error").textContent.includes("not the controller")`);
    }
    await page.until(
      `document.querySelectorAll("#workers tbody tr").length === 2 && !document.getElementById("login").open`,
    );
    await page.until(`document.querySelector("#model option")?.value === ${JSON.stringify(variant.name)}`);
    expect(await text("#status")).toBe("idle, 2 workers");
    expect(await page.read("location.href")).toBe(`${base()}/`);
    expect(await page.read("sessionStorage.getItem('token')")).toBe(token);
  });

  it("every control can be reached with Tab and has a name", async () => {
    const reached = new Set<string>();
    await page.read("document.activeElement.blur()");
    for (let i = 0; i < 40; i++) {
      await page.press("Tab");
      reached.add(await page.read(`document.activeElement.id || document.activeElement.name || ""`));
    }
    for (const control of ["target", "model", "kind", "users", "spawn", "duration", "stopRule", "start"])
      expect(reached).toContain(control);
    const nameless = await page.read<string[]>(`[...document.querySelectorAll("input, select, button")]
      .filter((node) => node.checkVisibility() && !node.labels?.length && !node.textContent && !node.ariaLabel).map((node) => node.outerHTML)`);
    expect(nameless).toEqual([]);
  });

  it("starts, shows and changes a load while it runs", async () => {
    await fill({ kind: "users", users: "40", spawn: "40", bound: "5000", stopRule: false, duration: "300" });
    await tabTo("start");
    await page.press("Enter");
    await page.until(
      `document.getElementById("status").textContent.startsWith("measuring: 40 users on ${variant.name}")`,
    );
    await page.until(`Number(document.querySelector(".tile b").textContent) > 10`);
    // Both workers send, each about half.
    await page.until(
      `[...document.querySelectorAll("#workers td:nth-child(3)")].every((cell) => Number(cell.textContent) > 5)`,
    );
    expect(
      await page.read(
        `document.getElementById("start").disabled && document.getElementById("target").matches(":disabled")`,
      ),
    ).toBe(true);
    await fill({ users: "80" });
    await tabTo("change");
    await page.press(" ");
    await page.until(`document.getElementById("status").textContent.includes("80 users")`);
    await page.until(
      `[...document.querySelectorAll(".tile")].some((tile) => tile.textContent === "80users")`,
    );
    await page.until(
      `document.querySelector("#replicas td:nth-child(2)") && Number(document.querySelector("#replicas td:nth-child(2)").textContent) > 50`,
    );
    await page.until(
      `[...document.querySelectorAll("[role=img]")].some((chart) => /queue, ms \\d/.test(chart.ariaLabel))`,
    );
    await fill({ kind: "poisson", rate: "100000" });
    await click("change");
    await page.until(`document.getElementById("form-error").textContent.includes("limit is 500")`);
    await fill({ rate: "60" });
    await click("change");
    await page.until(`document.getElementById("status").textContent.includes("poisson 60/s")`);
    await picture("running");
  });

  it("a reload changes nothing: the history comes from the controller (locust#2540)", async () => {
    const shown = `(document.querySelector("[role=img]").ariaLabel.match(/failed, shed [\\d.]+/) !== null)`;
    await page.go(`${base()}/`);
    await page.until(`document.getElementById("status").textContent.includes("poisson 60/s")`);
    await page.until(shown);
    expect(await page.read(`document.getElementById("stop").disabled`)).toBe(false);
    // A change starts from what runs.
    expect(
      await page.read(
        `["kind", "rate", "bound", "duration"].map((name) => document.getElementById("load-form").elements.namedItem(name).value)`,
      ),
    ).toEqual(["poisson", "60", "5000", "300"]);
    expect(
      await page.read(`document.getElementById("load-form").elements.namedItem("stopRule").checked`),
    ).toBe(false);
  });

  it("on a phone and in the dark nothing sticks out, and charts follow the scheme", async () => {
    const background = (): Promise<string> => page.read("getComputedStyle(document.body).backgroundColor");
    const light = await background();
    await page.dark(true);
    await page.viewport(360, 740, true);
    await page.until("document.documentElement.scrollWidth <= 360");
    expect(await background()).not.toBe(light);
    await page.until(
      `[...document.querySelectorAll(".chart canvas")].every((canvas) => canvas.getBoundingClientRect().right <= 360)`,
    );
    await picture("phone-dark");
    for (const kind of ["users", "constant", "ramp", "steps", "concurrency", "poisson"]) {
      await fill({ kind });
      expect(await page.read("document.documentElement.scrollWidth"), kind).toBeLessThanOrEqual(360);
    }
    await page.dark(false);
    await page.viewport(1400, 1000);
  });

  it("stops: a result that can be shown and downloaded in four forms", async () => {
    await tabTo("stop");
    await page.press("Enter");
    await page.until(`document.getElementById("status").textContent.startsWith("idle")`);
    await page.until(
      `document.querySelector("#history .why").textContent.includes("stopped at the console")`,
    );
    const id = await page.read<string>(
      `document.querySelector("#history button").title.replace("Show ", "")`,
    );
    const headers = { authorization: `Bearer ${token}` };
    for (const [format, sign] of [
      ["csv", /^at_s,time,/],
      ["json", /"kind": "users"/],
      ["hlog", /HISTF/],
      ["html", /<!doctype html>[^]*80 users/],
    ] as const) {
      const response = await fetch(`${base()}/console/runs/${id}/download/${format}`, { headers });
      expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${id}.${format}"`);
      expect(await response.text()).toMatch(sign);
    }
    await picture("stopped");
  });

  it("the stop rule presses Stop by itself", async () => {
    await fill({
      kind: "concurrency",
      concurrency: "8",
      bound: "1",
      stopRule: true,
      window: "2",
      duration: "300",
    });
    const focused = await page.read<string>(
      `(() => { const button = document.querySelector("#history button"); button.focus(); return button.title; })()`,
    );
    await click("start");
    await page.until(
      `document.querySelector("#history .why").textContent.includes("p95 of the last 2 s was")`,
      120_000,
    );
    // The list has changed twice meanwhile.
    expect(await page.read("document.activeElement.title")).toBe(focused);
    expect(await text("#history .bad")).toMatch(/stopped by its rule|invalid/);
  });

  it("a controller that is killed in the middle: the page comes back by itself, the measurement is lost, history is kept", async () => {
    await fill({ kind: "constant", rate: "30", bound: "5000", stopRule: false, duration: "300" });
    await click("start");
    await page.until(`document.getElementById("status").textContent.startsWith("measuring: constant")`);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const { port, httpPort } = controller;
    const gone = new Promise((resolve) => controller.child.once("exit", resolve));
    controller.child.kill("SIGKILL");
    await gone;
    await page.until(`document.getElementById("link").dataset.state === "off"`);
    controller = await startController(port, httpPort);
    await page.until(`document.getElementById("link").dataset.state === "on"`);
    await page.until(`document.querySelectorAll("#history tbody tr").length === 3`);
    expect(await text("#history .why")).toBe("the controller was restarted during the measurement");
    await page.until(`document.querySelectorAll("#workers tbody tr").length === 2`);
    await click("start");
    await page.until(`document.getElementById("status").textContent.startsWith("measuring: constant")`);
    await click("stop");
    await page.until(`document.getElementById("status").textContent.startsWith("idle")`);
  });

  it("a link that breaks without a word is noticed, and comes back by itself", async () => {
    const proxy = await TcpProxy.listen(() => controller.httpPort);
    try {
      await page.go(`http://127.0.0.1:${proxy.port}/#token=${token}`);
      await page.until(`document.querySelectorAll("#workers tbody tr").length === 2`);
      proxy.cut();
      await page.until(`document.getElementById("link").dataset.state === "off"`);
      proxy.heal();
      await page.until(`document.getElementById("link").dataset.state === "on"`);
      await page.until(`document.getElementById("status").textContent === "idle, 2 workers"`);
    } finally {
      await page.go("about:blank");
      await proxy.close();
    }
  });

  it("no error in the browser's log but the refused token and the controller that was away", () => {
    const unexpected = browser.complaints.filter(
      (text) =>
        !/401|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET|40[09]/.test(
          text,
        ),
    );
    expect(unexpected).toEqual([]);
  });
});
