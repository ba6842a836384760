"use strict";
// Zoom of the time series: one range for all charts of a run. Without this script the charts are still drawn whole.
(() => {
  const SPAN = 1000;
  document.documentElement.classList.add("scripted");

  const clock = (value, timed) => {
    if (!timed) return "sample " + Math.round(value + 1);
    const date = new Date(value * 1000);
    const two = (n) => String(n).padStart(2, "0");
    return two(date.getUTCHours()) + ":" + two(date.getUTCMinutes()) + ":" + two(date.getUTCSeconds());
  };
  const short = (value, unit) => {
    if (value === null || value === undefined) return "none";
    if (unit === "fraction") return (100 * value).toFixed(value < 0.1 ? 1 : 0) + " %";
    return Math.abs(value) >= 100 || Number.isInteger(value) ? value.toLocaleString("en", {maximumFractionDigits: 0}) : value.toFixed(2);
  };

  for (const group of document.querySelectorAll(".series")) {
    const charts = [...group.querySelectorAll("figure.chart")].map((figure) => ({
      figure,
      plot: figure.querySelector(".plot"),
      svg: figure.querySelector("svg"),
      hair: figure.querySelector(".hair"),
      pick: figure.querySelector(".pick"),
      read: figure.querySelector(".read"),
      rest: figure.querySelector(".read").textContent,
      from: figure.querySelector(".from"),
      to: figure.querySelector(".to"),
      values: JSON.parse(figure.dataset.values),
      xs: JSON.parse(figure.dataset.xs),
      unit: figure.dataset.unit,
    }));
    const timed = group.dataset.timed === "1";
    const first = Number(group.dataset.first);
    const last = Number(group.dataset.last);
    let left = 0;
    let right = SPAN;

    const show = () => {
      for (const chart of charts) {
        chart.svg.setAttribute("viewBox", left + " 0 " + (right - left) + " 100");
        chart.from.textContent = clock(first + (last - first) * left / SPAN, timed);
        chart.to.textContent = clock(first + (last - first) * right / SPAN, timed);
      }
      group.dataset.zoom = (SPAN / (right - left)).toFixed(2);
    };
    const zoom = (from, to) => {
      const width = Math.max(SPAN / 200, Math.min(SPAN, to - from));
      left = Math.max(0, Math.min(SPAN - width, from));
      right = left + width;
      show();
    };
    const scale = (factor) => {
      const middle = (left + right) / 2;
      const half = (right - left) * factor / 2;
      zoom(middle - half, middle + half);
    };
    const act = {in: () => scale(0.5), out: () => scale(2), back: () => zoom(left - (right - left) / 2, right - (right - left) / 2),
      on: () => zoom(left + (right - left) / 2, right + (right - left) / 2), all: () => zoom(0, SPAN)};
    for (const button of group.querySelectorAll("button")) button.addEventListener("click", act[button.dataset.act]);

    for (const chart of charts) {
      let start = null;
      const at = (event) => {
        const box = chart.svg.getBoundingClientRect();
        return left + (right - left) * Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
      };
      const nearest = (x) => {
        let best = 0;
        chart.xs.forEach((value, i) => { if (Math.abs(value - x) < Math.abs(chart.xs[best] - x)) best = i; });
        return best;
      };
      chart.plot.addEventListener("pointermove", (event) => {
        const x = at(event);
        for (const other of charts) {
          const i = nearest.call(null, x);
          other.plot.classList.add("hover");
          other.hair.setAttribute("x1", other.xs[i]);
          other.hair.setAttribute("x2", other.xs[i]);
          other.read.textContent = short(other.values[i], other.unit) + " at " + clock(first + (last - first) * other.xs[i] / SPAN, timed);
        }
        if (start !== null) {
          chart.pick.setAttribute("x", Math.min(start, x));
          chart.pick.setAttribute("width", Math.abs(x - start));
        }
      });
      chart.plot.addEventListener("pointerleave", () => {
        for (const other of charts) {
          other.plot.classList.remove("hover");
          other.read.textContent = other.rest;
        }
      });
      chart.plot.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        start = at(event);
        if (chart.plot.setPointerCapture) try { chart.plot.setPointerCapture(event.pointerId); } catch { /* a made-up event */ }
      });
      chart.plot.addEventListener("pointerup", (event) => {
        if (start === null) return;
        const end = at(event);
        const from = Math.min(start, end);
        const to = Math.max(start, end);
        start = null;
        chart.pick.setAttribute("width", 0);
        if (to - from > (right - left) / 100) zoom(from, to);
      });
      chart.plot.addEventListener("dblclick", () => zoom(0, SPAN));
    }
    show();
  }

  // On paper nothing can be unfolded: open what belongs on it, and put the page back afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.printed:not([open])")];
    for (const one of opened) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    opened = [];
  });
})();
