// Geometric means of the variants of a suite over time: the chart of the first page.
"use strict";

dashboard.page(() => {
  const { el, format } = dashboard;
  const place = document.getElementById("content");
  if (!place) return; // there is nothing yet
  const { panels } = dashboard.store.get("means");
  if (!panels.length) {
    place.replaceChildren(el("p", { class: "quiet" }, "No suite has two runs yet."));
    return;
  }
  const TITLES = { "latency-vs-baseline": "Latency to the baseline variant", "latency-vs-reference": "Latency to the reference toolchain", latency: "Latency" };
  const COLORS = 6; // of lines that can be told apart; see --series-1 to --series-6
  const panel = el("select", { onchange: () => choose(panels[panel.value]) },
    panels.map(({ suite, device, machine }, at) => el("option", { value: at }, dashboard.cut(`${suite}, ${device}, ${machine}`, 120))));
  const metric = el("select", { onchange: draw });
  const chart = el("div");
  const legend = el("ul", { class: "legend" });
  const listed = el("div");
  place.replaceChildren(el("div", { class: "controls" }, el("label", { class: "wide" }, "Suite and device", panel), el("label", { class: "wide" }, "Figure", metric)),
    chart, legend, el("details", {}, el("summary", {}, "The same as a table"), listed));
  choose(panels[0]);

  function choose({ metrics }) {
    metric.replaceChildren(...metrics.map((figure, at) => el("option", { value: at }, TITLES[figure.metric])));
    draw();
  }

  function draw() {
    const { runs: packed, metrics, suite, device } = panels[panel.value];
    const runs = dashboard.table(packed);
    const { metric: name, variants: all } = metrics[metric.value];
    const unit = name === "latency" ? "ns" : "ratio";
    const variants = all.map((variant, at) => ({ name: variant.variant, color: at < COLORS ? `series-${at + 1}` : "reference", shown: at < COLORS, ...dashboard.table(variant) }));
    const { show } = dashboard.chart(chart, {
      label: `Geometric means, ${dashboard.cut(suite, 60)} on ${dashboard.cut(device, 60)}`, unit,
      days: format.days(runs.started), releases: dashboard.releases(runs),
      lines: variants.map(({ name: label, mean, color, shown }) => ({ label, values: mean, color, shown, points: false })),
      open: (at) => { location.href = `run.html?id=${runs.key[at]}`; },
      read: (at) => dashboard.facts([
        ["Run", dashboard.link("run.html", runs.key[at], format.time(runs.started[at]))], ["Toolchain", dashboard.cut(runs.toolchain[at], 60)],
        ...variants.map(({ name: label, mean, cases }) => [dashboard.cut(label, 60), mean[at] === null ? "" : `${format.figure(mean[at], unit)} of ${format.count(cases[at], "case")}`]),
      ]),
    });
    legend.replaceChildren(...variants.map((variant, at) => el("li", {}, toggle(variant, (shown) => show(at, shown)))));
    table(runs, variants, unit);
  }

  function toggle({ name, color, shown }, show) {
    const box = el("input", { type: "checkbox", checked: shown, onchange: () => show(box.checked) });
    return el("label", { class: "toggle" }, box, el("span", { class: `key key-${color}`, "aria-hidden": "true" }), dashboard.name(name, 60));
  }

  function table(runs, variants, unit) {
    dashboard.list(listed, {
      caption: "Geometric means, the newest first", noun: "run", kept: false, rows: runs.key.map((_, at) => at).reverse(),
      columns: [
        { key: "run", title: "Run", header: true, cell: (at) => dashboard.link("run.html", runs.key[at], format.time(runs.started[at])) },
        { key: "toolchain", title: "Toolchain", cell: (at) => dashboard.cut(runs.toolchain[at], 60) },
        ...variants.map(({ name, mean, cases }) => ({ key: name, title: dashboard.name(name, 40), class: "number",
          cell: (at) => (mean[at] === null ? "-" : `${format.figure(mean[at], unit)} of ${format.whole(cases[at])}`) })),
      ],
    });
  }
});
