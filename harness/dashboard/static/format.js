// Numbers as people read them; units as in harness/report/units.py.
"use strict";

(() => {
  const SCALES = {
    ns: [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]],
    bytes: [["bytes", 1], ["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30]],
    "%": [["%", 1]],
    instructions: [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]],
  };
  const NOTHING = "-";

  function plain(value, decimals) {
    const fixed = value.toFixed(decimals).replace("-", "−");
    const [before, after] = fixed.split(".");
    const grouped = before.replace(/\B(?=(\d{3})+$)/g, ",");
    return after === undefined ? grouped : `${grouped}.${after}`;
  }

  function choose(value, unit) {
    const scale = SCALES[unit] || [["", 1]];
    return scale.filter(([, size]) => size <= Math.abs(value)).pop() || scale[0];
  }

  function decimalsFor(size, digits) {
    if (!(size > 0) || !Number.isFinite(size)) return 0;
    return Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 6);
  }

  dashboard.format = {
    /** One value with its unit: `76.59 ms`, `812,345 bytes`, `0.982`. */
    figure(value, unit) {
      if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
      if (unit === "ratio") return dashboard.format.ratio(value);
      if (unit !== "ns" && unit !== "instructions") return `${plain(value, Number.isInteger(value) ? 0 : 3)}${unit === "bytes" ? " bytes" : ""}`;
      const [name, size] = choose(value, unit);
      return `${plain(value / size, size === 1 && Number.isInteger(value) ? 0 : decimalsFor(Math.abs(value / size), 4))} ${name}`.trim();
    },

    ratio(value) {
      if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
      if (value >= 0.1 && value < 10) return value.toFixed(3);
      return value >= 10 && value < 10000 ? value.toFixed(1) : value.toPrecision(2);
    },

    interval(ratio, low, high) {
      const { ratio: text } = dashboard.format;
      return low === null || high === null ? text(ratio) : `${text(ratio)} [${text(low)}, ${text(high)}]`;
    },

    /** A ratio as a signed change, with as many decimals as it takes to show that there is one. */
    change(ratio) {
      if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return NOTHING;
      const percent = (ratio - 1) * 100;
      const decimals = percent === 0 || Math.abs(percent) >= 0.05 ? 1 : 3;
      return `${percent > 0 ? "+" : percent < 0 ? "−" : ""}${plain(Math.abs(percent), decimals)} %`;
    },

    /** Ten digits of a commit, and whether there were changes on top of it. */
    commit(text) {
      return (text || "").replace(/^([0-9a-f]{10})[0-9a-f]*/, "$1");
    },

    /** A share: `1.2 %`. */
    share(value) {
      if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
      return `${plain(value * 100, value < 0.1 ? 2 : 0)} %`;
    },

    p(value) {
      if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
      return value >= 0.01 ? value.toPrecision(2) : value <= 0 ? "0" : value.toExponential(0).replace("e-", "e−");
    },

    count(number, noun) {
      return `${plain(number, 0)} ${noun}${number === 1 || noun === "series" ? "" : "s"}`;
    },

    whole(number) {
      return number === null || number === undefined ? NOTHING : plain(number, 0);
    },

    /** Labels of an axis: one unit for all, and no two alike. */
    ticks(values, unit) {
      const largest = Math.max(...values.map(Math.abs));
      const [name, size] = choose(largest, unit);
      const step = values.length > 1 ? Math.abs(values[1] - values[0]) / size : largest / size;
      const decimals = [0, 1, 2, 3, 4, 5, 6].find((one) => Math.abs(step * 10 ** one - Math.round(step * 10 ** one)) < 1e-6 * step * 10 ** one) ?? decimalsFor(step, 2);
      return values.map((value) => `${plain(value / size, decimals)}${name ? ` ${name}` : ""}`);
    },

    /** `2026-11-21 03:50`, in UTC. */
    time(started) {
      return started.slice(0, 16).replace("T", " ");
    },

    day(started) {
      return started.slice(0, 10);
    },

    /** Labels of an axis: days, or times where all are of one day. */
    days(started) {
      const isOneDay = started.length && started[0].slice(0, 10) === started[started.length - 1].slice(0, 10);
      return started.map((one) => (isOneDay ? one.slice(11, 16) : one.slice(0, 10)));
    },
  };
})();
