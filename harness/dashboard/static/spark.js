// A series as a small picture: a letter a place, as harness/dashboard/spark.py writes it.
"use strict";

(() => {
  const LEVELS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

  dashboard.spark = (letters, width = 96, height = 18, at = null) => {
    const step = width / Math.max(letters.length - 1, 1);
    const heights = [...letters].map((letter) => height - (LEVELS.indexOf(letter) / (LEVELS.length - 1)) * height);
    if (heights.length === 1) heights.push(heights[0]);
    const path = heights.map((y, at) => `${at ? "L" : "M"}${(at * step).toFixed(1)},${y.toFixed(1)}`).join("");
    return dashboard.svg(
      "svg", { class: "spark", viewBox: `0 -1.5 ${width} ${height + 3}`, width, height, "aria-hidden": "true" },
      ...(at === null ? [] : [dashboard.svg("line", { x1: at * width, x2: at * width, y1: 0, y2: height })]),
      dashboard.svg("path", { d: path }),
    );
  };

  // Those of a page that is made without a script; a line is where something changed, from 0 to 1.
  addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll("[data-spark]")) {
      place.append(dashboard.spark(place.dataset.spark, 96, 18, Number(place.dataset.at)));
    }
  });
})();
