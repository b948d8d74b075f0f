// The variants of a model side by side: latest values of each, device by device.
"use strict";

dashboard.page(() => {
  const { el, format } = dashboard;
  const { runs, names, table } = dashboard.everySeries();
  const models = new Map(); // suite and model -> device and machine -> variant -> metric -> row
  const entry = (map, key, make) => { if (!map.has(key)) map.set(key, make()); return map.get(key); };
  for (let row = 0; row < table.rows; row++) {
    if (table.role[row] !== "newest") continue;
    const name = table.name[row];
    const model = entry(models, JSON.stringify([names.suite[name], names.model[name]]), () => new Map());
    const device = entry(model, JSON.stringify([names.device[name], table.machine[row]]), () => new Map());
    const variant = entry(device, JSON.stringify([names.variant[name], names.peer[name]]), () => new Map());
    const known = variant.get(table.metric[row]);
    if (known === undefined || table.run[row] > table.run[known]) variant.set(table.metric[row], row);
  }
  const place = document.getElementById("content");
  const suites = [...new Set([...models.keys()].map((key) => JSON.parse(key)[0]))];
  const choice = el("select", { "aria-label": "Model", onchange: () => { history.replaceState(null, "", `#${new URLSearchParams({ model: choice.value })}`); draw(); } },
    suites.map((suite) => el("optgroup", { label: dashboard.cut(suite, 60) }, [...models.keys()].filter((key) => JSON.parse(key)[0] === suite)
      .map((key) => el("option", { value: key }, dashboard.cut(JSON.parse(key)[1], 80))))));
  const shown = el("div");
  place.replaceChildren(el("div", { class: "controls" }, el("label", {}, "Model", choice)), shown);
  addEventListener("hashchange", recall);
  recall();

  function recall() {
    const asked = new URLSearchParams(location.hash.slice(1)).get("model");
    if (models.has(asked)) choice.value = asked;
    draw();
  }

  function draw() {
    const model = models.get(choice.value);
    if (!model) {
      shown.replaceChildren(el("p", { class: "quiet" }, "Nothing was measured yet."));
      return;
    }
    shown.replaceChildren(...[...model].map(([key, variants]) => device(...JSON.parse(key), variants)));
  }

  function device(name, machine, variants) {
    const newest = Math.max(...[...variants.values()].flatMap((metrics) => [...metrics.values()].map((row) => table.run[row])));
    const listed = [...variants].map(([key, metrics]) => ({ variant: JSON.parse(key)[0], peer: JSON.parse(key)[1], metrics, time: figure(metrics, "latency") }));
    const rated = listed.some(({ metrics }) => metrics.has("latency-vs-baseline"));
    const baseline = rated ? listed.find(({ peer, metrics, time }) => !peer && time !== null && !metrics.has("latency-vs-baseline"))?.time : undefined;
    // By the ratio, which is of turns that ran side by side: medians of a busy run may be in another order.
    const rank = ({ metrics, time }) => figure(metrics, "latency-vs-baseline") ?? (time === null ? Number.MAX_VALUE : time / (baseline ?? 1));
    listed.sort((a, b) => rank(a) - rank(b) || (a.variant < b.variant ? -1 : 1));
    const slowest = Math.max(...listed.map(({ time }) => time ?? 0));
    const others = ["compile-time", "module-size", "dispatches", "transient-memory", "host-peak-memory"]
      .map((metric) => [metric, listed.map(({ metrics }) => metrics.get(metric)).find((row) => row !== undefined)])
      .filter(([, row]) => row !== undefined).map(([metric, row]) => [metric, table.title[row]]);
    return el("section", {},
      el("h2", {}, dashboard.name(name), el("span", { class: "of" }, dashboard.cut(machine))),
      el("div", { class: "scroll variants", tabindex: 0, role: "region", "aria-label": `Variants on ${dashboard.cut(name, 60)}` }, el("table", {},
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Variant"), el("th", { scope: "col", class: "number" }, "Latency, latest run"), el("td", { class: "bar" }),
          el("th", { scope: "col", class: "number" }, "To the baseline [95\u00a0%]"), others.map(([, title]) => el("th", { scope: "col", class: "number" }, title)), el("th", { scope: "col" }, "Measured"))),
        el("tbody", {}, listed.map((variant) => line(variant, slowest, others, newest, rated))))));
  }

  function line({ variant, peer, metrics, time }, slowest, others, newest, rated) {
    const link = (metric, text) => dashboard.link("series.html", table.key[metrics.get(metric)], text);
    const last = Math.max(...[...metrics.values()].map((row) => table.run[row]));
    const tool = table.toolchain[[...metrics.values()][0]];
    return el("tr", { class: last < newest ? "old" : null },
      el("th", { scope: "row" }, dashboard.name(variant, 80), " ", peer ? el("span", { class: "of" }, dashboard.cut(tool || peer, 60)) : null),
      el("td", { class: "number" }, time === null ? "-" : link("latency", format.figure(time, "ns"))),
      el("td", { class: "bar" }, time === null ? "" : bar(time / slowest, peer)),
      el("td", { class: "number" }, ratio(metrics, rated && !peer && time !== null)),
      others.map(([metric]) => el("td", { class: "number" }, metrics.has(metric) ? link(metric, format.figure(figure(metrics, metric), table.unit[metrics.get(metric)])) : "-")),
      el("td", {}, dashboard.link("run.html", runs.key[last], format.day(runs.started[last])), last < newest ? " (not in the last run)" : ""));
  }

  function ratio(metrics, isBaseline) {
    const row = metrics.get("latency-vs-baseline");
    if (row === undefined) return isBaseline ? "baseline" : "-";
    return dashboard.link("series.html", table.key[row], format.interval(table.value[row], table.low[row], table.high[row]));
  }

  function figure(metrics, metric) {
    return metrics.has(metric) ? table.value[metrics.get(metric)] : null;
  }

  function bar(share, peer) {
    return dashboard.svg("svg", { class: "share", viewBox: "0 0 200 14", preserveAspectRatio: "none", "aria-hidden": "true" },
      dashboard.svg("rect", { class: peer ? "peer" : "own", x: 0, y: 1, width: Math.max(200 * share, 1), height: 12 }));
  }
});
