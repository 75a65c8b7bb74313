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

  for (const radio of form.querySelectorAll("[name=kind]")) radio.addEventListener("change", showKind);
  showKind();
  return { shape, request, isValid: () => form.reportValidity() };
})();
