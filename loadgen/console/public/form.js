/** The load form: from its fields to what the controller takes, and back to which fields are shown. */
const LoadForm = (() => {
  const form = document.getElementById("load-form");
  const field = (name) => form.elements.namedItem(name);
  const figure = (name) => Number(field(name).value);

  function kind() {
    return field("kind").value;
  }

  /** Only the fields of the chosen kind are shown and checked. */
  function showKind() {
    for (const label of form.querySelectorAll("[data-kinds]")) {
      const isShown = label.dataset.kinds.split(" ").includes(kind());
      label.hidden = !isShown;
      for (const input of label.querySelectorAll("input")) input.disabled = !isShown;
    }
  }

  function shape() {
    switch (kind()) {
      case "users":
        return {
          kind: "users",
          users: figure("users"),
          spawnPerS: figure("spawn"),
          thinkMinS: figure("thinkMin"),
          thinkMaxS: figure("thinkMax"),
        };
      case "concurrency":
        return { kind: "users", users: figure("concurrency"), spawnPerS: 1e6, thinkMinS: 0, thinkMaxS: 0 };
      case "ramp":
        return {
          kind: "ramp",
          fromPerS: figure("from"),
          toPerS: figure("to"),
          overS: figure("over"),
          arrivals: "poisson",
        };
      case "steps":
        return { kind: "steps", steps: steps(), arrivals: "poisson" };
      default:
        return { kind: kind(), ratePerS: figure("rate") };
    }
  }

  function steps() {
    return field("steps")
      .value.split(",")
      .map((step) => {
        const [rate, seconds] = step.split("x");
        return { ratePerS: Number(rate), forS: Number(seconds.replace("s", "")) };
      });
  }

  function request() {
    return {
      target: document.getElementById("target").value,
      model: document.getElementById("model").value,
      shape: shape(),
      warmupS: figure("warmup"),
      durationS: figure("duration"),
      slo: { quantile: figure("percentile") / 100, boundMs: figure("bound") },
      stopWindowS: field("stopRule").checked ? figure("window") : null,
      newConnectionPerRequest: field("fresh").checked,
    };
  }

  /** The fields of a shape by their names; null for one that the form cannot make, as a recording. */
  function fieldsOf(shape) {
    switch (shape.kind) {
      case "users":
        return shape.thinkMaxS === 0
          ? { kind: "concurrency", concurrency: shape.users }
          : {
              kind: "users",
              users: shape.users,
              spawn: shape.spawnPerS,
              thinkMin: shape.thinkMinS,
              thinkMax: shape.thinkMaxS,
            };
      case "ramp":
        return { kind: "ramp", from: shape.fromPerS, to: shape.toPerS, over: shape.overS };
      case "steps":
        return {
          kind: "steps",
          steps: shape.steps.map(({ ratePerS, forS }) => `${ratePerS}x${forS}s`).join(", "),
        };
      case "constant":
      case "poisson":
        return { kind: shape.kind, rate: shape.ratePerS };
      default:
        return null;
    }
  }

  /** Puts a load into the form, so that "Change load" starts from what runs and not from what the page came with. */
  function show(spec, shape) {
    const values = {
      ...fieldsOf(shape),
      percentile: +(100 * (spec.sloQuantile ?? 0.95)).toFixed(3),
      bound: spec.sloBoundMs,
      warmup: spec.warmupS,
      duration: spec.measureS,
      ...(spec.stopWhen === undefined ? {} : { window: spec.stopWhen.windowS }),
    };
    for (const [name, value] of Object.entries(values)) field(name).value = String(value);
    field("stopRule").checked = spec.stopWhen !== undefined;
    field("fresh").checked = spec.newConnectionPerRequest === true;
    showKind();
  }

  for (const radio of form.querySelectorAll("[name=kind]")) radio.addEventListener("change", showKind);
  showKind();
  return { shape, request, show, isValid: () => form.reportValidity() };
})();
