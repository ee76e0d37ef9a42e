// LogP: signatures of an end point, and the parameters found in them by message size.
"use strict";

(() => {
  const Charts = window.SluiceCharts;
  const {logAxis, sizeTicks, timeTicks} = window.SluiceFit;
  const SHAPES = ["circle", "rect", "triangle", "diamond", "roundRect"];

  const plain = (us) => String(Number(us.toPrecision(9)));

  function axes(colour, isNarrow, name, x) {
    const label = {color: colour.quiet, hideOverlap: true, showMinLabel: true, showMaxLabel: true};
    const tick = {lineStyle: {color: colour.line}};
    return {
      grid: {left: isNarrow ? 52 : 62, right: 18, top: 64, bottom: 44, outerBoundsMode: "none"},
      xAxis: Charts.axis(colour, logAxis(sizeTicks(x.axis.min, x.axis.max), {
        name: x.name, nameGap: 26, ...x.axis, axisTick: tick, axisLabel: {...label, formatter: x.text},
      })),
      yAxis: Charts.axis(colour, logAxis(timeTicks(x.ends.min, x.ends.max), {
        name, nameLocation: "end", nameGap: 10, nameTextStyle: {color: colour.quiet, align: "left"},
        ...x.ends, axisTick: tick, axisLabel: {...label, formatter: plain},
      })),
    };
  }

  function ends(values) {
    const usable = values.filter((one) => one > 0);
    return {min: Math.min(...usable) / 1.3, max: Math.max(...usable) * 1.3};
  }

  /** Ends that are never the same, nor so close that no power of 2 lies between. */
  function spread(min, max) {
    return max < 2 * min ? {min: min / 2, max: max * 2} : {min, max};
  }

  function signature(place) {
    const data = window.Sluice.data(`signature-${place.dataset.signature}`);
    const costs = data.curves.flatMap((curve) => curve.points.map(([, us]) => us));
    const bursts = data.curves.flatMap((curve) => curve.points.map(([burst]) => burst));
    const levels = (colour) => ({
      silent: true, symbol: "none", lineStyle: {color: colour.quiet, type: "dashed"},
      label: {color: colour.quiet, formatter: "{b}"},
      // The label of the upper one is above it, that of the lower one below: they never meet.
      data: [...data.levels].sort((one, other) => other[1] - one[1]).map(([name, us], place) => ({
        name, yAxis: us, label: {position: place === 0 ? "insideEndTop" : "insideEndBottom"},
      })),
    });
    Charts.mount(place, (colour, isNarrow) => {
      const base = Charts.base(colour, isNarrow);
      const inside = ends([...costs, ...data.levels.map(([, us]) => us)]);
      return {
        ...base,
        ...axes(colour, isNarrow, "cost of a message, µs", {
          name: "messages in a burst", text: (burst) => String(Math.round(burst)), ends: inside,
          axis: spread(Math.min(...bursts), Math.max(...bursts)),
        }),
        tooltip: {
          ...base.tooltip,
          formatter: (found) => [
            `${found[0].value[0]} ${found[0].value[0] === 1 ? "message" : "messages"}`,
            ...found.map((one) => `${one.seriesName}: ${SluiceText.time(one.value[1])}`),
          ].join("\n"),
        },
        series: data.curves.map((curve, number) => ({
          name: curve.name, type: "line", data: curve.points.filter(([, us]) => us > 0),
          symbol: SHAPES[number % SHAPES.length], symbolSize: 6, color: colour.series[number % colour.series.length],
          ...(number === 0 ? {markLine: levels(colour)} : {}),
        })),
      };
    });
  }

  /** Intervals as bars behind the marks. */
  function bars(series, shade) {
    return {
      type: "custom", name: series.name, silent: true, color: shade, z: 1, tooltip: {show: false},
      data: series.points.filter(([, , low, high]) => high > low),
      renderItem: (params, api) => {
        const [top, low] = [api.coord([api.value(0), api.value(3)]), api.coord([api.value(0), api.value(2)])];
        const foot = Number.isFinite(low[1]) ? low[1] : params.coordSys.y + params.coordSys.height;
        return {
          type: "line", style: {stroke: shade, lineWidth: 1.5, opacity: 0.6},
          shape: {x1: top[0], y1: top[1], x2: top[0], y2: Math.min(foot, params.coordSys.y + params.coordSys.height)},
        };
      },
    };
  }

  function parameters(place) {
    const data = window.Sluice.data("logp-data")
      .map((series) => ({...series, points: series.points.filter(([, us]) => us > 0)}))
      .filter((series) => series.points.length > 0);
    if (data.length === 0) {
      place.remove();
      return;
    }
    const sizes = data.flatMap((series) => series.points.map(([size]) => size));
    const times = data.flatMap((series) => series.points.flatMap(([, us, low, high]) => [us, Math.max(low, us / 4), Math.min(high, us * 4)]));
    Charts.mount(place, (colour, isNarrow) => {
      const base = Charts.base(colour, isNarrow);
      const [min, max] = [Math.min(...sizes), Math.max(...sizes)];
      return {
        ...base,
        ...axes(colour, isNarrow, "time, µs", {
          name: "message size", text: SluiceText.bytes, ends: ends(times),
          axis: spread(min / 1.3, max * 1.3),
        }),
        tooltip: {
          ...base.tooltip, trigger: "item",
          formatter: ({seriesName, data: [size, us, low, high]}) =>
            `${SluiceText.bytes(size)}\n${seriesName}: ${SluiceText.time(us)}\n95 %: ${SluiceText.time(low)} to ${SluiceText.time(high)}`,
        },
        series: data.flatMap((series, number) => {
          const shade = colour.series[number % colour.series.length];
          const marks = {
            name: series.name, type: "line", data: series.points, color: shade, z: 3,
            symbol: SHAPES[number % SHAPES.length], symbolSize: 8, lineStyle: {width: 1.5}, encode: {x: 0, y: 1},
          };
          return [marks, {...bars(series, shade), clip: true}];
        }),
      };
    });
  }

  window.Sluice.onPart("[data-signature]", signature);
  window.Sluice.onPart("[data-logp]", parameters);
})();
