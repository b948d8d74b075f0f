// The list of all comparisons.
"use strict";

dashboard.page(() => {
  const { el, format } = dashboard;
  const table = dashboard.table(dashboard.store.get("comparisons"));
  const COLORS = { regressed: "worse", failed: "worse", "outputs differ": "worse", improved: "better" };
  const at = (column) => (row) => table[column][row];
  const count = (verdict) => ({ key: verdict, title: `${verdict[0].toUpperCase()}${verdict.slice(1)}`, numeric: true, value: at(verdict), cell: (row) => (table[verdict][row]
    ? el("a", { href: `comparison.html?id=${table.key[row]}#verdict=${verdict}&metric=`, class: table.alarming[row] ? COLORS[verdict] : null }, format.whole(table[verdict][row])) : "0") });
  dashboard.list(document.getElementById("content"), {
    caption: "Comparisons", noun: "comparison", sort: "-created",
    rows: Array.from({ length: table.rows }, (_, row) => row),
    search: (row) => `${table.id[row]} ${table.title[row]} ${table.base[row]} ${table.head[row]} ${table.machine[row]} ${table.verdict[row]}`,
    filters: [{ key: "machine", label: "Machine", value: at("machine") }],
    columns: [
      { key: "created", title: "Made (UTC)", falling: true, header: true, value: at("created"), cell: (row) => dashboard.link("comparison.html", table.key[row], format.time(table.created[row])) },
      { key: "title", title: "Compared", class: "wrap", value: at("title"), cell: (row) => dashboard.cut(table.title[row], 200) },
      { key: "verdict", title: "Verdict", class: "wrap", value: at("verdict"), cell: (row) => el("span", { class: table.alarming[row] ? "worse wrapped" : null }, table.verdict[row]) },
      ...["regressed", "improved", "inconclusive", "outputs differ", "failed"].map(count),
      { key: "controls", title: "A/A controls", numeric: true, value: at("controls"), cell: (row) => (table.controls[row]
        ? `${format.whole(table.flagged[row])} of ${format.whole(table.controls[row])} flagged` : "-") },
    ],
  });
});
