// The one name that all scripts share, and the data that scripts of data/ hand over.
"use strict";

var dashboard = {
  store: new Map(),
  waiting: new Map(),

  /** Called by every script of data/. */
  put(key, payload) {
    dashboard.store.set(key, payload);
  },

  /** The payload of `data/<key>.js`; rejects where there is no such file. */
  load(key) {
    if (!/^(series|run|comparison|commands)\/[0-9a-f]{16}$|^(runs|series|changes|comparisons|means)$/.test(key)) {
      return Promise.reject(new Error("the address of this page names nothing that there can be"));
    }
    if (dashboard.store.has(key)) return Promise.resolve(dashboard.store.get(key));
    if (!dashboard.waiting.has(key)) {
      dashboard.waiting.set(key, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = `data/${key}.js`;
        script.onload = () => resolve(dashboard.store.get(key));
        script.onerror = () => reject(new Error("this dashboard has no such page; it may be of another history"));
        document.head.append(script);
      }));
    }
    return dashboard.waiting.get(key);
  },

  /** Columns as arrays, under their names; `rows` is how many there are. See harness/dashboard/encode.py. */
  table(payload) {
    const table = { rows: payload.rows };
    for (const [name, column] of Object.entries(payload.columns)) table[name] = decode(column, payload.rows);
    return table;
  },

  /** Every run and every series, for pages that have both scripts: `runs`, `names` of cases, `table` of series. */
  everySeries() {
    const all = dashboard.store.get("series");
    return {
      runs: dashboard.table(dashboard.store.get("runs")),
      names: dashboard.table(all.names),
      table: dashboard.table(all.series),
    };
  },

  /** The 16 hex digits behind `?id=`; null where there are none. */
  id() {
    const id = new URLSearchParams(location.search).get("id");
    return id !== null && /^[0-9a-f]{16}$/.test(id) ? id : null;
  },

  /** Start the script of a page once the page is there; what goes wrong is told on it. */
  page(start) {
    const run = () => Promise.resolve().then(start).catch((error) => dashboard.fail(error)).then(() => {
      document.documentElement.dataset.ready = "true";
      performance.mark("ready");
    });
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", run);
    else run();
  },

  fail(error) {
    const place = document.getElementById("content") || document.querySelector("main");
    const note = document.createElement("p");
    note.className = "problem";
    note.textContent = `Nothing to show: ${error.message}.`;
    place.replaceChildren(note);
    if (!/no such page|names nothing/.test(error.message)) console.error(error);
  },
};

function decode(column, rows) {
  if (column === null) return new Array(rows).fill(null);
  return column.texts ? column.at.map((place) => column.texts[place]) : column;
}
