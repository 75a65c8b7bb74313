/** The charts of a measurement, for the console and for the report file. Needs uPlot. */
const LoadCharts = (() => {
  /** Series: [label, colour variable, how a second gives its value, digits]; `dash` for what is planned or promised. */
  const definitions = [
    {
      title: "Requests per second",
      series: [
        ["answered, failed, shed", "--series-1", (s) => s.ratePerS, 1],
        ["offered", "--soft", (s) => s.offeredPerS, 1, { dash: [4, 4] }],
      ],
    },
    {
      title: "Response time, ms",
      hasObjective: true,
      series: [
        ["p50", "--series-1", (s) => s.p50Ms, 1],
        ["p95", "--series-2", (s) => s.p95Ms, 1, { width: 2 }],
        ["p99", "--series-3", (s) => s.p99Ms, 1],
        ["objective", "--bad", (s, view) => view.boundMs, 0, { dash: [6, 4], auto: false }],
      ],
    },
    {
      title: "Failed and shed per second",
      series: [
        ["failed", "--bad", (s) => s.failed, 0],
        ["shed", "--series-2", (s) => s.shed, 0],
      ],
    },
    {
      title: "Users and requests in flight",
      series: [
        ["users", "--series-3", (s) => s.users, 0],
        ["in flight", "--series-1", (s) => s.inFlight, 0],
      ],
    },
    {
      title: "Lateness of the client, p99, ms",
      series: [["lateness", "--series-2", (s) => s.latenessP99Ms, 2]],
    },
    {
      title: "Server: queue, batch size, GPU",
      series: [
        ["queue, ms", "--series-2", (s) => s.server?.queueMs ?? null, 1],
        ["batch", "--series-1", (s) => s.server?.batchSize ?? null, 1],
        ["GPU busy, %", "--series-4", (s) => percent(s.server?.gpuBusy), 0, { scale: "%" }],
      ],
    },
  ];

  function percent(share) {
    return share === null || share === undefined ? null : 100 * share;
  }

  function create(container) {
    const view = { boundMs: null, seconds: [] };
    let plots = [];

    function build() {
      for (const { plot } of plots) plot.destroy();
      container.replaceChildren();
      plots = definitions.map((definition) => one(definition));
      draw();
    }

    function one(definition) {
      const figure = document.createElement("figure");
      figure.className = "chart";
      const caption = document.createElement("figcaption");
      caption.textContent = definition.title;
      const place = document.createElement("div");
      figure.append(caption, place);
      container.append(figure);
      const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
      const axis = {
        stroke: colour("--soft"),
        grid: { stroke: colour("--grid"), width: 1 },
        ticks: { stroke: colour("--grid"), width: 1 },
      };
      const hasPercent = definition.series.some(([, , , , more]) => more?.scale === "%");
      const options = {
        width: Math.max(200, figure.clientWidth - 20),
        height: 190,
        cursor: { sync: { key: "load" }, points: { size: 6 } },
        hooks: { setLegend: [showLast] },
        scales: {
          x: { time: false },
          y: { range: (_, __, most) => fromZero(most, definition.hasObjective ? view.boundMs : null) },
          "%": { range: [0, 100] },
        },
        axes: [
          {
            ...axis,
            incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200],
            values: (_, ticks) => ticks.map(clock),
          },
          { ...axis, size: 52 },
          ...(hasPercent ? [{ ...axis, side: 1, scale: "%", size: 44, grid: { show: false } }] : []),
        ],
        series: [
          { label: "at", value: (_, value) => (value === null ? "-" : clock(value)) },
          ...definition.series.map(([label, name, , digits, more]) => ({
            label,
            stroke: colour(name),
            width: 1.5,
            points: { show: false },
            value: (_, value) => (value === null || value === undefined ? "-" : value.toFixed(digits)),
            ...more,
          })),
        ],
      };
      const plot = new uPlot(options, [[], ...definition.series.map(() => [])], place);
      return { plot, definition, figure };
    }

    function draw() {
      const { seconds } = view;
      const times = seconds.map(({ atS }) => atS);
      const last = seconds.at(-1);
      for (const { plot, definition, figure } of plots) {
        plot.setData([
          times,
          ...definition.series.map(([, , read]) => seconds.map((second) => read(second, view) ?? null)),
        ]);
        const values = definition.series.map(([label, , read, digits]) => {
          const value = last === undefined ? null : (read(last, view) ?? null);
          return `${label} ${value === null ? "unknown" : value.toFixed(digits)}`;
        });
        showLast(plot);
        figure.setAttribute("role", "img");
        figure.setAttribute("aria-label", `${definition.title}: ${values.join(", ")}`);
      }
    }

    function resize() {
      for (const { plot, figure } of plots) {
        const width = Math.max(200, figure.clientWidth - 20);
        if (Math.abs(width - plot.width) > 1) plot.setSize({ width, height: plot.height });
      }
    }

    build();
    new ResizeObserver(resize).observe(container);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
    return {
      setObjective(boundMs) {
        view.boundMs = boundMs;
        draw();
      },
      setSeconds(seconds) {
        view.seconds = [...seconds];
        draw();
      },
      /** @param most seconds that a chart is given, as the controller says it */
      addSecond(second, most) {
        view.seconds.push(second);
        // As the controller thins what it sends: every other one goes, the newest stays.
        const newest = view.seconds.length - 1;
        if (newest >= most) view.seconds = view.seconds.filter((_, index) => (newest - index) % 2 === 0);
        draw();
      },
    };
  }

  /** Without a cursor the legend shows the newest second. */
  function showLast(plot) {
    const last = plot.data[0].length - 1;
    if (last >= 0 && plot.cursor.idx == null && plot.legend.idx !== last) plot.setLegend({ idx: last });
  }

  /**
   * From 0, with a little room above; a chart of nothing has a scale, too. The objective is in sight unless it is so far away that the
   * measured lines would lie flat.
   */
  function fromZero(most, objective) {
    const top = objective !== null && objective < 4 * most ? Math.max(most, objective) : most;
    return [0, top > 0 ? top * 1.08 : 1];
  }

  function clock(seconds) {
    const whole = Math.round(seconds);
    return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
  }

  return { create };
})();
