// Noise and load of machines over time.
"use strict";

dashboard.page(() => {
  const { el, format } = dashboard;
  const runs = dashboard.table(dashboard.store.get("runs"));
  const place = document.getElementById("content");
  const names = [...new Set(runs.machine_class)];
  if (!names.length) return;
  const choice = el("select", { onchange: draw }, names.map((name) => el("option", { value: name }, dashboard.cut(name))));
  choice.value = runs.machine_class[runs.rows - 1];
  const noise = el("div");
  const load = el("div");
  place.replaceChildren(el("div", { class: "controls" }, el("label", { hidden: names.length < 2 }, "Machine", choice)),
    el("h3", {}, "Noise: the relative spread between generations of the median case"), noise, el("h3", {}, "Load as runs began"), load);
  draw();

  function draw() {
    const chosen = runs.machine_class.map((_, run) => run).filter((run) => runs.machine_class[run] === choice.value);
    chart(noise, chosen, { label: "Noise", unit: "%", values: chosen.map((run) => (runs.noise[run] === null ? null : runs.noise[run] * 100)) });
    chart(load, chosen, { label: "Load", unit: "", values: chosen.map((run) => runs.load_1min[run]) });
  }

  function chart(box, chosen, { label, unit, values }) {
    if (!values.some((value) => value !== null)) {
      box.replaceChildren(el("p", { class: "quiet" }, "Not recorded."));
      return;
    }
    const changed = chosen.map((run, at) => at).filter((at) => at && ["machine", "cpu", "kernel"].some((fact) => runs[fact][chosen[at]] !== runs[fact][chosen[at - 1]]));
    dashboard.chart(box, {
      label: `${label} on ${dashboard.cut(choice.value, 80)}`, unit, scales: false, mode: "zero",
      days: format.days(chosen.map((run) => runs.started[run])),
      lines: [{ label, values, color: "line" }],
      marks: changed.map((at) => ({ from: at, to: at, at })),
      open: (at) => { location.href = `run.html?id=${runs.key[chosen[at]]}`; },
      read: (at) => dashboard.facts([
        ["Run", dashboard.link("run.html", runs.key[chosen[at]], format.time(runs.started[chosen[at]]))],
        [label, values[at] === null ? "-" : `${values[at].toFixed(2)}${unit ? ` ${unit}` : ""}`], ["Suite", dashboard.cut(runs.suite[chosen[at]], 60)],
        ["Machine", runs.machine[chosen[at]]], ["Kernel", runs.kernel[chosen[at]]],
        ["Changed here", changed.includes(at) ? "the machine, its processor or its kernel" : ""],
      ]),
    });
  }
});
