// The page of one run.
"use strict";

dashboard.page(async () => {
  const { el, format } = dashboard;
  const { runs, names, table: series } = dashboard.everySeries();
  const id = dashboard.id();
  const number = runs.key.indexOf(id);
  if (number < 0) throw new Error("this dashboard has no such page; it may be of another history");
  const run = await dashboard.load(`run/${id}`);
  const fact = (column) => runs[column][number];
  const cases = dashboard.table(run.cases);
  const figures = run.metrics.map((metric) => ({ ...metric, table: dashboard.table(metric) }));
  const lookups = new Map(figures.map(({ metric, table }) => [metric, new Map(table.case.map((row, at) => [row, at]))]));

  dashboard.title(`Run ${fact("run")}`);
  document.getElementById("heading").replaceChildren(dashboard.name(fact("run"), 10000));
  neighbours();
  document.getElementById("facts").replaceChildren(facts());
  if (run.releases) dashboard.runReleases(run.releases);
  failures();
  table();
  const asked = /^#case-\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1)); // of one that failed
  if (asked) asked.focus();
  changes(dashboard.table(await dashboard.load("changes")));
  comparisons(dashboard.table(await dashboard.load("comparisons")));
  document.getElementById("repro").replaceChildren(dashboard.commands(fact("command") || "harness run"));

  function neighbours() {
    const same = runs.suite.map((suite, at) => at).filter((at) => runs.suite[at] === fact("suite") && runs.machine_class[at] === fact("machine_class"));
    const place = same.indexOf(number);
    const link = (to, word) => (to === undefined ? null : el("a", { href: `run.html?id=${runs.key[to]}` }, word));
    document.getElementById("neighbours").replaceChildren(...[link(same[place - 1], "◂ the run before"), link(same[place + 1], "the next run ▸")].filter(Boolean));
  }

  function bad(column) {
    return el("span", { class: fact(column) ? "worse" : null }, `${format.whole(fact(column))} ${column}`);
  }

  function facts() {
    const checked = fact("selfcheck_rows");
    return dashboard.facts([
      ["Suite", dashboard.cut(fact("suite"))], ["Started", `${format.time(fact("started"))} UTC`],
      ["Clock", fact("clock") && el("span", { class: "worse" }, fact("clock"))],
      ["Toolchain", dashboard.cut(`IREE ${fact("toolchain")}${fact("revision") ? ` (${format.commit(fact("revision"))})` : ""}`)],
      ["Beside", fact("reference") && dashboard.cut(`IREE ${fact("reference")}`)],
      ["Machine", dashboard.cut(fact("machine_class"))], ["Its id", fact("machine")], ["Kernel", fact("kernel")],
      ["Load", fact("load_1min") === null ? "" : fact("load_1min").toFixed(2)],
      ["Noise", fact("noise") === null ? "" : `${format.share(fact("noise"))} between generations, the median case`],
      ["A/A rate", checked ? `${format.whole(fact("selfcheck_flagged"))} of ${format.whole(checked)} rows flagged (at most ${format.share(fact("selfcheck_bound"))})` : "never checked"],
      ["Harness", dashboard.cut(`${fact("harness_version")} ${format.commit(fact("harness_commit"))}`)],
      ["Cases", el("span", {}, `${format.whole(fact("cases"))} planned, ${format.whole(fact("measured"))} measured, `, bad("failed"), ", ", bad("missing"))],
      ["State", fact("finished") ? "" : el("span", { class: "worse" }, "did not finish")],
    ]);
  }

  /** What failed, once a cause; names can be linked to as `#case-` and the case's number. */
  function failures() {
    const causes = new Map();
    cases.status.forEach((status, row) => {
      if (status !== "failed" && status !== "missing") return;
      const cause = JSON.stringify([status, cases.toolchain[row], cases.stage[row], cases.message[row]]);
      causes.set(cause, [...(causes.get(cause) || []), row]);
    });
    const shown = [...causes.values()].slice(0, 100);
    document.getElementById("failures-part").hidden = !shown.length;
    document.getElementById("failures").replaceChildren(...shown.map(failure),
      ...(causes.size > shown.length ? [el("li", {}, `and ${format.count(causes.size - shown.length, "cause")} more, in the table`)] : []));
  }

  function failure(rows) {
    const [first] = rows;
    const labels = rows.map((row) => el("span", { id: `case-${cases.name[row]}`, tabindex: -1 }, dashboard.name(names.case[cases.name[row]])));
    const why = [` with ${dashboard.cut(cases.toolchain[first], 60)}`, cases.stage[first] ? ` at ${cases.stage[first]}` : "",
      cases.message[first] ? `: ${dashboard.cut(cases.message[first], 1000)}` : ""];
    return el("li", {}, dashboard.chip(cases.status[first]), " ", rows.length > 1
      ? [format.count(rows.length, "case"), ...why, el("ul", { class: "plain names" }, labels.map((name) => el("li", {}, name)))] : [labels[0], ...why]);
  }

  function changes(found) {
    const here = found.first_bad.map((_, at) => at).filter((at) => found.first_bad[at] === number);
    document.getElementById("changes-part").hidden = !here.length;
    document.getElementById("changes").replaceChildren(...here.slice(0, 50).map((at) => el("li", {},
      dashboard.moved(found.ratio[at], found.worse[at]), ` ${found.kind[at]} `,
      dashboard.link("series.html", found.series[at], dashboard.name(found.case[at], 120), ` ${found.title[at].toLowerCase()}`), " ",
      dashboard.chip(found.cause[at], `cause-${found.cause[at]}`))),
      ...(here.length > 50 ? [el("li", {}, `and ${format.whole(here.length - 50)} more, in the list of all changes`)] : []));
  }

  function comparisons(found) {
    const here = found.id.map((_, at) => at).filter((at) => found.base[at] === fact("run") || found.head[at] === fact("run"));
    document.getElementById("comparisons-part").hidden = !here.length;
    document.getElementById("comparisons").replaceChildren(...here.slice(0, 20).map((at) => el("li", {},
      dashboard.link("comparison.html", found.key[at], format.time(found.created[at])), " ",
      dashboard.cut(found.title[at], 200))));
  }

  function value(metric, row, column = "value") {
    const at = lookups.has(metric) ? lookups.get(metric).get(row) : undefined;
    return at === undefined ? null : figures.find((figure) => figure.metric === metric).table[column][at];
  }

  function text(metric, row, unit) {
    const here = value(metric, row);
    return unit === "ratio" ? format.interval(here, value(metric, row, "low"), value(metric, row, "high")) : format.figure(here, unit);
  }

  function figureColumn({ metric, title, table: own }) {
    const link = (row, text) => dashboard.link("series.html", series.key[value(metric, row, "series")], text);
    const unit = series.unit[own.series[0]];
    const cell = (row) => {
      return value(metric, row) === null ? "-" : link(row, text(metric, row, unit));
    };
    return { key: metric, title, numeric: true, value: (row) => value(metric, row), cell };
  }

  function table() {
    const shown = ["latency", "latency-vs-baseline", "latency-vs-reference", "compile-time", "module-size", "dispatches", "transient-memory"];
    const columns = shown.map((metric) => figures.find((figure) => figure.metric === metric)).filter(Boolean).map(figureColumn);
    if (columns.length && columns[0].key === "latency") {
      columns.splice(1, 0, { key: "before", title: "To the run before", numeric: true,
        value: (row) => value("latency", row, "change"), cell: (row) => format.change(value("latency", row, "change")) });
    }
    dashboard.list(document.getElementById("cases"), {
      caption: "Cases", noun: "case", rows: cases.name.map((_, row) => row), details,
      search: (row) => `${names.case[cases.name[row]]} ${cases.toolchain[row]} ${cases.status[row]} ${cases.message[row]}`,
      filters: [
        { key: "status", label: "Status", value: (row) => cases.status[row] }, { key: "toolchain", label: "Toolchain", value: (row) => cases.toolchain[row] },
        { key: "device", label: "Device", value: (row) => names.device[cases.name[row]] }, { key: "model", label: "Model", value: (row) => names.model[cases.name[row]] },
      ],
      columns: [
        { key: "case", title: "Case", header: true, value: (row) => names.case[cases.name[row]], cell: (row) => dashboard.name(names.case[cases.name[row]], 120) },
        { key: "toolchain", title: "Toolchain", value: (row) => cases.toolchain[row], cell: (row) => dashboard.cut(cases.toolchain[row], 60) },
        { key: "status", title: "Status", value: (row) => cases.status[row], cell: (row) => dashboard.chip(cases.status[row]) },
        ...columns,
      ],
    });
  }

  function details(row) {
    const lines = figures.map(({ metric, title, table: own }) => {
      if (value(metric, row) === null) return null;
      return [title, el("span", {}, dashboard.link("series.html", series.key[value(metric, row, "series")], text(metric, row, series.unit[own.series[0]])),
        ` ${value(metric, row, "change") === null ? "" : `(${format.change(value(metric, row, "change"))})`}`)];
    }).filter(Boolean);
    const box = el("div", {}, cases.message[row] ? el("p", {}, dashboard.cut(cases.message[row], 4000)) : null, dashboard.facts(lines),
      cases.flags[row] ? dashboard.facts([["Flags", el("code", {}, dashboard.cut(cases.flags[row], 4000))]]) : null);
    if (cases.repro[row]) box.append(dashboard.commands(cases.repro[row]));
    return box;
  }
});
