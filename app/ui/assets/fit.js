// Charts of a fit: samples, lines with their band, residuals; a click on a sample leaves it out.
// Which samples go is one choice for the whole page: charts, tables and the form all show it.
"use strict";

window.SluiceFit = (() => {
  const Charts = window.SluiceCharts;
  const USED = 0;
  const OUTLIER = 1;
  const UNUSED = 2;
  const KINDS = {[OUTLIER]: "outlier", [UNUSED]: "not fitted to"};

  /** What a box says: size, time and stage; the server writes numbers in its own way. */
  function parts(value) {
    const [size, time, ...stage] = value.split("|");
    return [Number(size), Number(time), stage.join("|")];
  }

  const normal = (value) => parts(value).join("|");

  /** A log axis cannot hold 0: samples there stand at its minimum. */
  function extent(values, isLog) {
    const usable = isLog ? values.filter((one) => one > 0) : values;
    const min = Math.min(...usable);
    const max = Math.max(...usable);
    if (isLog) return [min / 1.3, max * 1.3];
    const room = (max - min || max || 1) * 0.04;
    return [Math.max(0, min - room), max + room];
  }

  /** The samples that the form leaves out, and what shows them. */
  class Choice {
    constructor(form) {
      this.form = form;
      this.button = form.querySelector("#again");
      this.picked = form.querySelector("#picked");
      this.watchers = [];
      const boxes = this.boxes().filter((box) => box.checked);
      this.before = new Map(boxes.map((box) => [normal(box.value), box.value]));
      this.values = new Map(this.before);
      document.addEventListener("change", ({target}) => this.onChange(target));
      form.addEventListener("input", () => this.showCount());
      form.addEventListener("formdata", ({formData}) => this.send(formData));
      this.showCount();
    }

    boxes() {
      return [...this.form.elements].filter((one) => one.name === "excluded");
    }

    has(value) {
      return this.values.has(normal(value));
    }

    /** Call again(choice) whenever another sample is left out or kept. */
    watch(again) {
      this.watchers.push(again);
    }

    onChange(box) {
      if (box.form !== this.form) return;
      if (box.name === "excluded") this.set(box.value, box.checked);
      else this.showCount();
    }

    set(value, isOut) {
      if (isOut) this.values.set(normal(value), value);
      else this.values.delete(normal(value));
      this.list();
      for (const box of this.boxes()) box.checked = this.has(box.value);
      this.showCount();
      this.watchers.forEach((again) => again(this));
      const [size, time] = parts(value);
      window.Sluice.say(`${SluiceText.bytes(size)}, ${SluiceText.time(time)}: ${isOut ? "left out" : "kept"}`);
    }

    /** Those that were picked on this page; those left out before have boxes of their own. */
    list() {
      const focused = this.picked.contains(document.activeElement);
      const rows = [...this.values].filter(([key]) => !this.before.has(key)).map(([, value]) => this.row(value));
      this.picked.replaceChildren(...rows);
      if (focused) this.button.focus();
    }

    row(value) {
      const [size, time, stage] = parts(value);
      const [row, label, box] = ["li", "label", "input"].map((name) => document.createElement(name));
      label.className = "tick";
      Object.assign(box, {type: "checkbox", name: "excluded", value, checked: true});
      label.append(box, ` ${stage}, ${SluiceText.bytes(size)}, ${SluiceText.time(time)}`);
      row.append(label);
      return row;
    }

    /** What is sent: every sample once, on whichever page of a table its box was. */
    send(formData) {
      formData.delete("excluded");
      for (const value of this.values.values()) formData.append("excluded", value);
    }

    isChanged() {
      const same = this.values.size === this.before.size && [...this.values.keys()].every((key) => this.before.has(key));
      return !same || [...this.form.elements].some((one) => one.name !== "excluded" && isEdited(one));
    }

    /** How many samples go, on the button. */
    showCount() {
      const count = this.values.size;
      this.button.disabled = !this.isChanged();
      this.button.textContent = count === 0 ? "Fit again" : `Fit again without ${count} ${count === 1 ? "sample" : "samples"}`;
    }
  }

  function isEdited(field) {
    if (field.localName === "select") return [...field.options].some((one) => one.selected !== one.defaultSelected);
    return field.localName === "input" && field.type !== "hidden" && field.value !== field.defaultValue;
  }

  const choices = new WeakMap();

  function choice() {
    const form = document.getElementById("again-form");
    if (!choices.has(form)) choices.set(form, new Choice(form));
    return choices.get(form);
  }

  /** Places of labels on a log axis: 1, 2, 5 where there are few decades. */
  function timeTicks(min, max) {
    const decades = Math.log10(max / min);
    const digits = decades < 2.2 ? [1, 2, 5] : decades < 3.5 ? [1, 3] : [1];
    const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
    const powers = Array.from({length: last - first + 1}, (_, place) => first + place);
    return within(powers.flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`))), min, max);
  }

  /** The same for sizes: powers of 2, 4 or 16. */
  function sizeTicks(min, max) {
    const doublings = Math.log2(max / min);
    const step = doublings < 5 ? 1 : doublings < 20 ? 2 : 4;
    const powers = Array.from({length: 64 / step}, (_, place) => 2 ** (place * step));
    return within(powers, min, max);
  }

  const within = (values, min, max) => values.filter((one) => one >= min && one <= max);

  /** A log axis whose lines and labels stand at these values. */
  function logAxis(values, more) {
    return {
      type: "log", ...more, axisTick: {...more.axisTick, customValues: values},
      axisLabel: {...more.axisLabel, customValues: values, showMinLabel: true, showMaxLabel: true},
    };
  }

  class FitChart {
    constructor(place) {
      this.place = place;
      this.choice = choice();
      this.data = window.Sluice.data(`fit-chart-${place.dataset.fitChart}`);
      this.remember();
      this.draw();
      this.choice.watch(() => this.one?.draw());
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
      for (const value of this.choice.before.values()) {
        const [size, time, stage] = parts(value);
        if (stage === this.data.stage) this.data.points.push([size, time, null, USED]);
      }
    }

    onClick(event) {
      const point = event.data?.point;
      if (!point || !this.data.canExclude) return;
      this.choice.set(this.value(point), !this.choice.has(this.value(point)));
    }

    // --- drawing --------------------------------------------------------------------------------

    option(colour, isNarrow) {
      const {logSize, logTime, points, residualEnd} = this.data;
      const [minSize, maxSize] = extent(points.map((one) => one[0]), logSize);
      const [minTime, maxTime] = extent(points.map((one) => one[1]), logTime);
      const side = {left: isNarrow ? 54 : 62, right: 16};
      const base = Charts.base(colour, isNarrow);
      const kind = (isLog, ticks) => (one) => Charts.axis(colour, isLog ? logAxis(ticks, one) : {type: "value", ...one});
      const sizes = kind(logSize, sizeTicks(minSize, maxSize));
      const size = (more) => sizes({
        min: minSize, max: maxSize, axisTick: {lineStyle: {color: colour.line}},
        axisLabel: {color: colour.quiet, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: SluiceText.bytes}, ...more,
      });
      const above = {nameLocation: "end", nameGap: 8, nameTextStyle: {color: colour.quiet, align: "left"}};
      return {
        ...base,
        // Both as wide as they are told: room made for labels would be another one in each.
        grid: [{...side, top: 60, height: "50%"}, {...side, bottom: 44, height: "20%"}].map((one) => ({
          ...one, outerBoundsMode: "none",
        })),
        xAxis: [
          size({gridIndex: 0, axisLabel: {show: false}}),
          size({gridIndex: 1, name: "message size", nameGap: 26}),
        ],
        yAxis: [
          kind(logTime, timeTicks(minTime, maxTime))({
            gridIndex: 0, min: minTime, max: maxTime, ...above, name: "time, µs", axisTick: {lineStyle: {color: colour.line}},
            axisLabel: {color: colour.quiet, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: (us) => String(us)},
          }),
          Charts.axis(colour, {
            gridIndex: 1, type: "value", min: -residualEnd, max: residualEnd, interval: residualEnd,
            ...above, name: "off the line by",
            axisLabel: {color: colour.quiet, hideOverlap: true, formatter: SluiceText.percent},
          }),
        ],
        tooltip: {...base.tooltip, trigger: "item", formatter: (found) => this.tipText(found.data.point)},
        series: [...this.lines(colour, logTime ? minTime : 0), ...this.samples(colour, minTime)],
      };
    }

    tipText(point) {
      if (!point) return "";
      const kind = KINDS[point[3]];
      const off = point[2] === null ? "" : `${SluiceText.signedPercent(point[2])} off the line`;
      const click = this.data.canExclude ? "click: leave out or keep" : "";
      return [`${SluiceText.bytes(point[0])}: ${SluiceText.time(point[1])}`, off, kind, click].filter(Boolean).join("\n");
    }

    lines(colour, minTime) {
      return this.data.pieces.flatMap((whole, number) => {
        const shown = (values) => values.map((us) => Math.max(us, minTime));
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

    samples(colour, minTime) {
      const {points, residualEnd} = this.data;
      const groups = [
        ["samples", colour.series[6], "circle", (point) => point[3] !== OUTLIER && point[3] !== UNUSED],
        ["outliers", colour.series[1], "diamond", (point) => point[3] === OUTLIER],
        ["not fitted to", colour.line, "circle", (point) => point[3] === UNUSED],
      ];
      const isGone = (point) => this.choice.has(this.value(point));
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
        const above = found.map((point) => ({value: [point[0], Math.max(point[1], minTime)], point}));
        const off = found.filter((point) => point[2] !== null);
        const isFar = (point) => Math.abs(point[2]) > residualEnd;
        const below = off.filter((point) => !isFar(point)).map((point) => ({value: [point[0], point[2]], point}));
        const far = off.filter(isFar).map((point) => this.arrow(point));
        const beside = {...common, xAxisIndex: 1, yAxisIndex: 1};
        const label = {show: true, color: colour.text, fontSize: 11, formatter: ({data}) => SluiceText.signedPercent(data.point[2])};
        return [
          {...common, data: above},
          {...beside, data: below},
          {...beside, data: far, symbol: "triangle", symbolSize: 9, clip: false, label, labelLayout: {hideOverlap: true}},
        ].filter((one) => one.data.length > 0);
      });
    }

    /** What lies beyond the axis: an arrow at its edge, with the value. */
    arrow(point) {
      const isAbove = point[2] > 0;
      return {
        value: [point[0], isAbove ? this.data.residualEnd : -this.data.residualEnd], point,
        symbolRotate: isAbove ? 0 : 180, label: {position: isAbove ? "bottom" : "top"},
      };
    }
  }

  window.Sluice.onPart("[data-fit]", choice);
  window.Sluice.onPart("[data-fit-chart]", (place) => new FitChart(place));
  return {choice, kinds: KINDS, logAxis, sizeTicks, timeTicks};
})();
