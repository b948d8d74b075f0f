// The page of one comparison: its rows as a table whose one column is the forest plot.
"use strict";

dashboard.page(async () => {
  const { el, format } = dashboard;
  const id = dashboard.id();
  if (!id) throw new Error("the address of this page names nothing that there can be");
  const comparison = await dashboard.load(`comparison/${id}`);
  const table = dashboard.table(comparison.rows);
  const at = (column) => (row) => table[column][row];
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const forestRow = (row) => ({ ratio: table.ratio[row], low: table.ci_low[row], high: table.ci_high[row], floor: table.floor[row], verdict: table.verdict[row] });

  dashboard.title(comparison.title);
  document.getElementById("heading").replaceChildren(dashboard.cut(comparison.title, 2000));
  document.getElementById("verdict").replaceChildren(el("span", { class: comparison.alarming ? "worse wrapped" : null }, comparison.verdict));
  const side = (run, key) => (key ? dashboard.link("run.html", key, dashboard.name(run)) : dashboard.name(run));
  document.getElementById("facts").replaceChildren(dashboard.facts([
    ...(comparison.within ? [["Compared", "variants against baseline"], ["Of run", side(comparison.head, comparison.head_key)]]
      : [["Base", side(comparison.base, comparison.base_key)], ["Head", side(comparison.head, comparison.head_key)]]),
    ["Folder", dashboard.name(comparison.id, 10000)], ["Made", `${format.time(comparison.created)} UTC`], ["Machine", dashboard.cut(comparison.machine)],
    ["A/A controls", controls()],
  ]));
  causes();
  verdicts();
  explained();
  document.getElementById("repro").replaceChildren(dashboard.commands(comparison.command));

  const most = ["latency", "compile-time"].find((metric) => table.metric.includes(metric));
  let axis = dashboard.forestAxis(rows.map(forestRow));
  const head = el("span", { class: "axis" });
  const list = { current: null };
  list.current = dashboard.list(document.getElementById("rows"), {
    caption: "Rows", noun: "row", rows, details,
    search: (row) => `${table.case[row]} ${table.title[row]} ${table.verdict[row]} ${table.reason[row]}`,
    filters: [
      { key: "verdict", label: "Verdict", value: at("verdict") },
      { key: "metric", label: "Metric", value: at("title"), otherwise: most ? table.title[table.metric.indexOf(most)] : "" },
      { key: "model", label: "Model", value: at("model") }, { key: "variant", label: "Variant", value: at("variant") },
      { key: "device", label: "Device", value: at("device") }, { key: "gate", label: "Gate", value: at("gate") },
      { key: "control", label: "Controls", value: (row) => (table.control[row] ? "A/A controls" : "compared") },
    ],
    columns: [
      { key: "case", title: "Case", header: true, value: at("case"), cell: (row) => [dashboard.name(table.case[row], 120), table.control[row] ? " (A/A control)" : ""] },
      { key: "metric", title: "Metric", value: at("title") },
      { key: "verdict", title: "Verdict", value: at("verdict"), cell: (row) => [dashboard.chip(table.verdict[row]),
        table.gate[row] === "violated" ? el("span", { class: "worse" }, " gate") : ""] },
      { key: "base", title: "Base", numeric: true, value: at("base_value"), cell: (row) => format.figure(table.base_value[row], table.unit[row]) },
      { key: "head", title: "Head", numeric: true, value: at("head_value"), cell: (row) => format.figure(table.head_value[row], table.unit[row]) },
      { key: "ratio", title: "Ratio [95 %]", numeric: true, value: at("ratio"), cell: (row) => format.interval(table.ratio[row], table.ci_low[row], table.ci_high[row]) },
      { key: "forest", title: head, class: "forest-cell", cell: (row) => dashboard.forestLine(axis, forestRow(row)) },
    ],
    shown: (drawn, found) => {
      const fresh = dashboard.forestAxis(found.map(forestRow));
      head.replaceChildren(dashboard.forestHead(fresh));
      if (fresh.low === axis.low && fresh.high === axis.high) return;
      axis = fresh;
      drawn.forEach((row, place) => {
        const cell = document.querySelectorAll("#rows td.forest-cell")[place];
        if (cell) cell.replaceChildren(dashboard.forestLine(axis, forestRow(row)));
      });
    },
  });

  function controls() {
    const all = rows.filter((row) => table.control[row]);
    if (!all.length) return "none";
    const flagged = all.filter((row) => ["regressed", "improved"].includes(table.verdict[row])).length;
    return `${format.whole(flagged)} of ${format.whole(all.length)} flagged${flagged ? ", so some verdicts here are likely to be false too" : ""}`;
  }

  /** Rows without a ratio that somebody has to look at, once a cause: other outputs first. */
  function causes() {
    const found = ["outputs differ", "failed", "missing"].map((verdict) => [verdict, new Map()]);
    for (const [verdict, byReason] of found) {
      rows.filter((row) => table.verdict[row] === verdict && !table.control[row]).forEach((row) => {
        byReason.set(table.reason[row], [...(byReason.get(table.reason[row]) || []), row]);
      });
    }
    const lines = found.flatMap(([verdict, byReason]) => [...byReason].map(([reason, own]) => cause(verdict, reason, [...new Set(own.map(at("case")))])));
    document.getElementById("causes-part").hidden = !lines.length;
    document.getElementById("causes").replaceChildren(...lines.slice(0, 100), ...(lines.length > 100 ? [el("li", {}, "and more, in the table")] : []));
  }

  function cause(verdict, reason, cases) {
    return el("li", {}, dashboard.chip(verdict), " ", cases.length > 1
      ? [`${format.count(cases.length, "case")}: ${dashboard.cut(reason, 1000)}`, el("ul", { class: "plain" }, cases.map((name) => el("li", {}, dashboard.name(name, 120))))]
      : [dashboard.name(cases[0], 120), reason && `: ${dashboard.cut(reason, 1000)}`]);
  }

  /** What each regression that was explained is made of. */
  function explained() {
    document.getElementById("explained-part").hidden = !comparison.explained.length;
    document.getElementById("explained").replaceChildren(...comparison.explained.map((one) => el("p", {}, dashboard.cut(one.sentence, 2000))));
  }

  /** How many rows of each metric have which verdict; each leads to those rows. */
  function verdicts() {
    const order = ["regressed", "improved", "inconclusive", "outputs differ", "failed", "missing", "new", "unchanged", "identical"];
    const timed = ["latency", "compile-time"].map((metric) => table.title[table.metric.indexOf(metric)]).filter(Boolean);
    const titles = [...new Set([...timed, ...table.title])];
    const counts = new Map();
    rows.filter((row) => !table.control[row]).forEach((row) => {
      const key = `${table.title[row]}\n${table.verdict[row]}`;
      counts.set(key, (counts.get(key) || 0) + 1);
    });
    const used = order.filter((verdict) => titles.some((title) => counts.has(`${title}\n${verdict}`)));
    const cell = (title, verdict) => {
      const count = counts.get(`${title}\n${verdict}`);
      const hash = new URLSearchParams({ verdict, metric: title });
      return el("td", { class: "number" }, count ? el("a", { href: `#${hash}` }, format.whole(count)) : "0");
    };
    document.getElementById("verdicts").classList.toggle("calm", !comparison.alarming);
    document.getElementById("verdicts").replaceChildren(
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Metric"), used.map((verdict) => el("th", { scope: "col", class: "number" }, dashboard.chip(verdict))))),
      el("tbody", {}, titles.map((title) => el("tr", {}, el("th", { scope: "row" }, title), used.map((verdict) => cell(title, verdict))))));
  }

  function details(row) {
    return el("div", {}, el("p", {}, table.reason[row]), dashboard.facts([
      ["Model", dashboard.name(table.model[row])], ["Variant", dashboard.name(table.variant[row])], ["Device", dashboard.name(table.device[row])],
      ["p", format.p(table.p[row])], ["Floor", table.floor[row] ? format.share(table.floor[row]) : ""], ["Gate", table.gate[row]],
    ]));
  }
});
