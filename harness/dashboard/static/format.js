// Numbers as people read them; units as in harness/report/units.py.
"use strict";

(() => {
  const RULES = dashboard.store.get("rules").units; // of harness/report/units.py
  const NOTHING = "-";

  function plain(value, decimals) {
    const fixed = value.toFixed(decimals).replace("-", "−");
    const [before, after] = fixed.split(".");
    const grouped = before.replace(/\B(?=(\d{3})+$)/g, ",");
    return after === undefined ? grouped : `${grouped}.${after}`;
  }

  const scaleOf = (unit) => RULES.scales[unit] || RULES.scales[""];

  function choose(value, unit) {
    const { units } = scaleOf(unit);
    return units.filter(([, size]) => size <= Math.abs(value)).pop() || units[0];
  }

  /** As unit_of and unit_that_tells there: { name, size, decimals }. */
  function unitOf(unit, values) {
    if (Object.hasOwn(RULES.fixed, unit)) return RULES.fixed[unit];
    const { units, digits } = scaleOf(unit);
    const above = values.filter((value) => value > 0).sort((a, b) => a - b);
    if (!above.length) return { name: units[0][0], size: units[0][1], decimals: 0 };
    const half = (above.length - 1) / 2;
    const [name, size] = choose((above[Math.floor(half)] + above[Math.ceil(half)]) / 2, unit);
    if (size === 1 && above.every(Number.isInteger)) return { name, size, decimals: 0 };
    const before = Math.floor(Math.log10(above[0]) - Math.log10(size)) + 1;
    return { name, size, decimals: Math.min(Math.max(digits - before, 0), digits - 1) };
  }

  function unitThatTells(unit, values) {
    const chosen = { ...unitOf(unit, values) };
    const apart = () => new Set(values.map((value) => plain(value / chosen.size, chosen.decimals))).size;
    while (apart() < new Set(values).size && chosen.decimals < RULES.most_decimals) chosen.decimals += 1;
    return chosen;
  }

  const write = (value, { name, size, decimals }) => `${plain(value / size, decimals)} ${name}`.trim();

  function decimalsFor(size, digits) {
    if (!(size > 0) || !Number.isFinite(size)) return 0;
    return Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 6);
  }

  dashboard.format = {
    /** One value with its unit: `76.59 ms`, `793 KiB`, `0.982`. */
    figure(value, unit) {
      if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
      return unit === "ratio" ? dashboard.format.ratio(value) : write(value, unitOf(unit, [value]));
    },

    /** A change of level in one unit, in which the two look different. */
    level(before, after, unit) {
      if (unit === "ratio" || ![before, after].every(Number.isFinite)) return `${dashboard.format.figure(before, unit)} → ${dashboard.format.figure(after, unit)}`;
      const chosen = unitThatTells(unit, [before, after]);
      return `${write(before, chosen)} → ${write(after, chosen)}`;
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

    /** Labels of an axis: one unit for all, a smaller one where they lie close together, and no two alike. */
    ticks(values, unit) {
      const largest = Math.max(...values.map(Math.abs));
      const apart = values.length > 1 ? Math.abs(values[1] - values[0]) : largest;
      const { units } = unit === "%" ? { units: [["%", 1]] } : scaleOf(unit);
      const fitting = units.filter(([, size], at) => !at || (size <= largest && apart >= size / 1000));
      const [name, size] = fitting[fitting.length - 1];
      const step = apart / size;
      const decimals = [0, 1, 2, 3, 4, 5, 6].find((digits) => Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) < 1e-6 * step * 10 ** digits) ?? decimalsFor(step, 3);
      return values.map((value) => `${plain(value / size, decimals)}${name ? ` ${name}` : ""}`);
    },

    /** Distances of ticks that are round in a unit; undefined where powers of ten are. */
    increments(unit) {
      if (unit !== "bytes") return undefined;
      return scaleOf(unit).units.flatMap(([, size]) => [1, 2, 5, 10, 20, 50, 100, 200, 500].map((step) => step * size));
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
      return started.map((time) => (isOneDay ? time.slice(11, 16) : time.slice(0, 10)));
    },
  };
})();
