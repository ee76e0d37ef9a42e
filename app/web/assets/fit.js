// Charts of a fit: samples, lines with their band, residuals; a click on a sample leaves it out.
"use strict";

(() => {
  const Charts = window.SluiceCharts;
  const USED = 0;
  const OUTLIER = 1;
  const UNUSED = 2;

  function sizeText(bytes) {
    for (const [power, unit] of [[40, "TiB"], [30, "GiB"], [20, "MiB"], [10, "KiB"]]) {
      if (bytes >= 2 ** power) return `${Number((bytes / 2 ** power).toPrecision(4))} ${unit}`;
    }
    return `${Number(bytes.toPrecision(4))} B`;
  }

  /** What a box says: size, time and stage; the server writes numbers in its own way. */
  function parts(value) {
    const [size, time, ...stage] = value.split("|");
    return [Number(size), Number(time), stage.join("|")];
  }

  const normal = (value) => parts(value).join("|");

  const percent = (value) => `${Number((100 * value).toPrecision(3))} %`;

  /** A log axis cannot hold 0: samples there stand at its least value. */
  function extent(values, isLog) {
    const usable = isLog ? values.filter((one) => one > 0) : values;
    const least = Math.min(...usable);
    const greatest = Math.max(...usable);
    if (isLog) return [least / 1.3, greatest * 1.3];
    const room = (greatest - least || greatest || 1) * 0.04;
    return [Math.max(0, least - room), greatest + room];
  }

  class FitChart {
    constructor(place) {
      this.place = place;
      this.form = place.closest("form");
      this.data = window.Sluice.data(`fit-chart-${place.dataset.fitChart}`);
      this.picked = place.parentElement.querySelector(".picked");
      this.remember();
      this.draw();
      this.form.addEventListener("change", () => this.one?.draw());
    }

    async draw() {
      this.one = await Charts.mount(this.place, (colour, isNarrow) => this.option(colour, isNarrow));
      this.one?.chart.on("click", (event) => this.onClick(event));
    }

    value(point) {
      return `${point[0]}|${point[1]}|${this.data.stage}`;
    }

    /** Samples that were left out before are no part of the fit's data; the form has them. */
    remember() {
      for (const box of this.boxes().filter((one) => one.defaultChecked)) {
        const [size, time, stage] = parts(box.value);
        if (stage === this.data.stage) this.data.points.push([size, time, null, USED]);
      }
    }

    boxes() {
      return [...this.form.querySelectorAll("[name=excluded]")];
    }

    excluded() {
      return new Set(this.boxes().filter((box) => box.checked).map((box) => normal(box.value)));
    }

    /** Tick the sample's box, or make one where the outliers do not have it. */
    onClick(event) {
      const point = event.data?.point;
      if (!point || !this.data.canExclude) return;
      const value = this.value(point);
      let box = this.boxes().find((one) => normal(one.value) === value);
      if (box) box.checked = !box.checked;
      else box = this.add(value, point);
      box.dispatchEvent(new Event("change", {bubbles: true}));
      window.Sluice.say(`${sizeText(point[0])}, ${Charts.timeText(point[1])}: ${box.checked ? "left out" : "kept"}`);
    }

    add(value, point) {
      const label = document.createElement("label");
      const box = document.createElement("input");
      const row = document.createElement("li");
      label.className = "tick";
      Object.assign(box, {type: "checkbox", name: "excluded", value, checked: true});
      label.append(box, ` ${sizeText(point[0])}, ${Charts.timeText(point[1])}`);
      row.append(label);
      this.picked.append(row);
      return box;
    }

    // --- drawing --------------------------------------------------------------------------------

    option(colour, isNarrow) {
      const {logSize, logTime, points, residualEnd} = this.data;
      const [leastSize, greatestSize] = extent(points.map((one) => one[0]), logSize);
      const [leastTime, greatestTime] = extent(points.map((one) => one[1]), logTime);
      const side = {left: isNarrow ? 54 : 62, right: 16};
      const base = Charts.base(colour, isNarrow);
      const size = (more) => Charts.axis(colour, {
        type: logSize ? "log" : "value", logBase: greatestSize > leastSize * 4 ** 9 ? 16 : 4, min: leastSize, max: greatestSize,
        axisLabel: {color: colour.quiet, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: sizeText}, ...more,
      });
      return {
        ...base,
        grid: [{...side, top: 40, height: "52%"}, {...side, bottom: 44, height: "22%"}],
        xAxis: [
          size({gridIndex: 0, axisLabel: {show: false}}),
          size({gridIndex: 1, name: "Message size", nameGap: 26}),
        ],
        yAxis: [
          Charts.axis(colour, {
            gridIndex: 0, type: logTime ? "log" : "value", min: leastTime, max: greatestTime,
            name: "Time, µs", nameGap: isNarrow ? 40 : 46,
            axisLabel: {color: colour.quiet, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: (us) => String(Number(us.toPrecision(3)))},
          }),
          Charts.axis(colour, {
            gridIndex: 1, type: "value", min: -residualEnd, max: residualEnd, interval: residualEnd,
            name: "Residual", nameGap: isNarrow ? 40 : 46,
            axisLabel: {color: colour.quiet, hideOverlap: true, formatter: percent},
          }),
        ],
        tooltip: {...base.tooltip, trigger: "item", formatter: (found) => this.words(found.data.point)},
        series: [...this.lines(colour, logTime ? leastTime : 0), ...this.samples(colour, leastTime)],
      };
    }

    words(point) {
      if (!point) return "";
      const kind = {[OUTLIER]: "outlier", [UNUSED]: "not fitted to"}[point[3]];
      const off = point[2] === null ? "" : `${point[2] > 0 ? "+" : ""}${percent(point[2])} off the line`;
      const click = this.data.canExclude ? "click: leave out or keep" : "";
      return [`${sizeText(point[0])}: ${Charts.timeText(point[1])}`, off, kind, click].filter(Boolean).join("\n");
    }

    lines(colour, leastTime) {
      return this.data.pieces.flatMap((whole, number) => {
        const shown = (values) => values.map((us) => Math.max(us, leastTime));
        const piece = {...whole, time: shown(whole.time), low: shown(whole.low), high: shown(whole.high)};
        const at = (values) => piece.size.map((one, place) => [one, values[place]]);
        const common = {type: "line", showSymbol: false, silent: true, z: 3, color: colour.series[0]};
        const edge = {...common, name: "95 % band", lineStyle: {width: 1, type: "dashed", opacity: 0.8}, z: 2};
        const end = piece.upTo === null ? [] : [{xAxis: piece.upTo}];
        return [
          {
            ...common, name: "fitted", data: at(piece.time), lineStyle: {width: 2},
            markLine: {
              silent: true, symbol: "none", label: {show: false}, data: end,
              lineStyle: {color: colour.quiet, type: "dotted"},
            },
          },
          this.band(colour, piece, number),
          {...edge, data: at(piece.low)},
          {...edge, data: at(piece.high)},
        ];
      });
    }

    /** The band as one polygon: an area between two lines that may be on a log axis. */
    band(colour, piece, number) {
      const outline = [
        ...piece.size.map((one, place) => [one, piece.low[place]]),
        ...piece.size.map((one, place) => [one, piece.high[place]]).reverse(),
      ];
      return {
        type: "custom", name: "95 % band", silent: true, clip: true, z: 1, data: [number],
        color: colour.series[0], tooltip: {show: false},
        renderItem: (_, api) => ({
          type: "polygon",
          shape: {points: outline.map((point) => api.coord(point))},
          style: {fill: colour.series[0], opacity: 0.18},
        }),
      };
    }

    samples(colour, leastTime) {
      const gone = this.excluded();
      const {points, residualEnd} = this.data;
      const inside = (value) => Math.max(-residualEnd, Math.min(residualEnd, value));
      const groups = [
        ["samples", colour.series[6], "circle", (point) => point[3] !== OUTLIER && point[3] !== UNUSED],
        ["outliers", colour.series[1], "diamond", (point) => point[3] === OUTLIER],
        ["not fitted to", colour.line, "circle", (point) => point[3] === UNUSED],
      ];
      const isGone = (point) => gone.has(this.value(point));
      const drawn = [
        ...groups.map(([name, shade, symbol, belongs]) => [
          name, shade, symbol, points.filter((point) => belongs(point) && !isGone(point)),
        ]),
        ["left out", colour.series[3], "path://M0,0L10,10M10,0L0,10", points.filter(isGone)],
      ];
      return drawn.filter(([, , , found]) => found.length > 0).flatMap(([name, shade, symbol, found]) => {
        const common = {
          type: "scatter", name, symbol, color: shade, z: 4,
          symbolSize: name === "samples" ? 4 : 8,
          itemStyle: {opacity: name === "samples" ? 0.55 : 0.95, borderColor: shade, borderWidth: name === "left out" ? 2 : 0},
        };
        const above = found.map((point) => ({value: [point[0], Math.max(point[1], leastTime)], point}));
        const below = found
          .filter((point) => point[2] !== null)
          .map((point) => ({value: [point[0], inside(point[2])], point}));
        return [
          {...common, data: above},
          {...common, data: below, xAxisIndex: 1, yAxisIndex: 1},
        ];
      });
    }
  }

  /** How many samples would go, on the button. */
  function startForm(form) {
    const button = form.querySelector("#again");
    const before = form.querySelectorAll("[name=excluded]:checked").length;
    const told = () => {
      const count = form.querySelectorAll("[name=excluded]:checked").length;
      button.disabled = count === before && ![...form.querySelectorAll("[name=excluded]")].some((box) => box.checked !== box.defaultChecked);
      button.textContent = count === 0 ? "Fit again" : `Fit again without ${count} ${count === 1 ? "sample" : "samples"}`;
    };
    form.addEventListener("change", told);
    told();
  }

  window.Sluice.onPart("[data-fit-chart]", (place) => new FitChart(place));
  window.Sluice.onPart("[data-fit]", startForm);
})();
