// A series as a small picture: a letter a place, as harness/dashboard/spark.py writes it.
"use strict";

(() => {
  const LEVELS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

  dashboard.spark = (letters, width = 96, height = 18) => {
    const step = width / Math.max(letters.length - 1, 1);
    const heights = [...letters].map((letter) => height - (LEVELS.indexOf(letter) / (LEVELS.length - 1)) * height);
    if (heights.length === 1) heights.push(heights[0]);
    const path = heights.map((y, at) => `${at ? "L" : "M"}${(at * step).toFixed(1)},${y.toFixed(1)}`).join("");
    return dashboard.svg(
      "svg", { class: "spark", viewBox: `0 -1.5 ${width} ${height + 3}`, width, height, "aria-hidden": "true" },
      dashboard.svg("path", { d: path }),
    );
  };
})();
