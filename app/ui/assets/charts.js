// Curves, drawn by ECharts out of the JSON beside them. What draws is loaded when the first of them
// appears. Colours are the page's own and follow it when light turns dark; nothing sets inline HTML:
// tooltips are drawn, not written.
"use strict";

window.SluiceCharts = (() => {
  const SERIES = 7;
  const makers = {};
  const live = new Set();
  let library = null;

  function load(address) {
    library ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => done(window.echarts);
      script.onerror = () => {
        library = null;
        failed(new Error("the charts could not be loaded"));
      };
      document.head.append(script);
    });
    return library;
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(`--${name}`).trim();
    const series = Array.from({length: SERIES}, (_, i) => named(`series-${i + 1}`));
    return {
      text: named("text"), quiet: named("quiet"), line: named("line"), panel: named("panel"),
      accent: named("accent"), warn: named("warn"), sans: named("sans"), series,
    };
  }

  /** What every chart has: letters, axes, a tooltip that is drawn. */
  function base(colour, isNarrow) {
    return {
      animation: false,
      textStyle: {fontFamily: colour.sans, color: colour.text, fontSize: 12},
      color: colour.series,
      grid: {left: 12, right: isNarrow ? 24 : 30, top: 60, bottom: 30, containLabel: true},
      legend: {
        type: "scroll", top: 3, left: 0, right: 0, itemWidth: 36, itemHeight: 10, padding: [4, 5],
        textStyle: {color: colour.text, lineHeight: 18}, inactiveColor: colour.line,
        pageTextStyle: {color: colour.quiet}, pageIconColor: colour.accent, pageIconInactiveColor: colour.line,
      },
      tooltip: {
        trigger: "axis", renderMode: "richText", confine: true, backgroundColor: colour.panel,
        borderColor: colour.line, textStyle: {color: colour.text, fontSize: 12},
        axisPointer: {lineStyle: {color: colour.quiet}},
      },
    };
  }

  function axis(colour, more) {
    return {
      nameLocation: "middle", nameTextStyle: {color: colour.quiet}, axisLine: {show: true, lineStyle: {color: colour.line}},
      axisTick: {lineStyle: {color: colour.line}}, axisLabel: {color: colour.quiet, hideOverlap: true},
      splitLine: {lineStyle: {color: colour.line, opacity: 0.6}}, minorSplitLine: {show: false}, ...more,
    };
  }

  /** Draw an option that `make(colour, isNarrow)` gives; draws again where the place changes. */
  async function mount(place, make) {
    let echarts;
    try {
      echarts = await load(place.dataset.echarts);
    } catch (error) {
      place.classList.add("undrawn");
      place.textContent = `${error.message}; the table below has the numbers.`;
      return null;
    }
    if (!place.isConnected) {
      return null;
    }
    const chart = echarts.init(place, null, {renderer: "canvas"});
    const one = {place, chart, draw: () => chart.setOption(make(colours(), place.clientWidth < 520), true)};
    one.draw();
    one.watch = new ResizeObserver(() => {
      if (place.isConnected) {
        chart.resize();
        one.draw();
      }
    });
    one.watch.observe(place);
    live.add(one);
    place.dataset.drawn = "yes";
    return one;
  }

  function drawAll() {
    live.forEach((one) => one.draw());
  }

  function disposeRemoved() {
    for (const one of live) {
      if (!one.place.isConnected) {
        one.watch.disconnect();
        one.chart.dispose();
        live.delete(one);
      }
    }
  }

  const SYMBOLS = ["circle", "rect", "triangle", "diamond", "arrow", "roundRect", "pin"];
  const DASHES = ["solid", "dashed", "dotted"];

  /** The colour, mark and dash of a series, distinct from its neighbours' without the colour too. */
  function styleOf(colour, rank) {
    const color = colour.series[rank % SERIES];
    return {
      symbol: SYMBOLS[rank % SYMBOLS.length], itemStyle: {color},
      lineStyle: {color, width: 2, type: DASHES[rank % DASHES.length]},
    };
  }

  /** An axis of bytes, with a tick at each power of two that has room. */
  const bytesAxis = (colour, first, last) => axis(colour, {
    type: "log", logBase: 2, min: first, max: last, name: "fragment size", nameGap: 26, splitLine: {show: false},
    axisLabel: {color: colour.quiet, hideOverlap: true, showMinLabel: false, formatter: (size) => SluiceText.bytes(size)},
  });

  const latencyAxis = (colour, data, range) => axis(colour, {
    type: "value", ...range, name: `latency, ${data.unit}`, nameLocation: "end", nameGap: 10,
    nameTextStyle: {color: colour.quiet, align: "left"},
    axisLabel: {color: colour.quiet, showMinLabel: false, showMaxLabel: false, formatter: (us) => String(Number((us / data.us).toPrecision(4)))},
  });

  // --- latency against the size that is repeated ------------------------------------------------

  makers.fragments = (data) => (colour, isNarrow) => {
    const best = Math.min(...data.latency_us);
    const marked = data.marks.flatMap((one) => one.points.map(([, us]) => us)).filter((us) => us <= 3 * best);
    const top = Math.max(1.5 * best, 1.05 * Math.max(...marked));
    const shown = data.sizes.map((size, i) => [size, data.latency_us[i]]);
    const first = shown.find(([, us]) => us <= top)?.[0] ?? data.sizes[0];
    const last = data.sizes.at(-1);
    // Labels keep clear of the axes and their names.
    const beside = (size, us) => size ** 4 > first * last ** 3 ? "left" : size ** 4 < first ** 3 * last || us > 0.95 * top ? "right" : "top";
    // The curve falls to the best size and rises from there: a label above a mark stands on its open side.
    const bestSize = data.sizes[data.latency_us.indexOf(best)];
    const placed = (size, us) => beside(size, us) === "top" ? {position: "top", align: size < bestSize ? "left" : "right"} : {position: beside(size, us)};
    const marks = data.marks.filter((one) => one.points.length).map((one, rank) => ({
      // Lines without a stroke: the legend then shows the mark as it is.
      ...styleOf(colour, rank + 1), lineStyle: {width: 0}, name: one.name, type: "line", symbolSize: 13, z: 5 + rank,
      label: {show: one.name !== "best size" && !isNarrow, color: colour.text, backgroundColor: colour.panel, formatter: ({data: at}) => at.text},
      labelLayout: {hideOverlap: true},
      // What lies above or left of the picture stands at its edge.
      data: one.points.map(([size, us], i) => ({
        value: [Math.max(size, first), Math.min(us, top)], us, text: one.labels[i], label: placed(size, us),
      })),
    }));
    const band = (within) => within <= 0.01 ? 0.22 : 0.1;
    const bands = data.bands.map(([within, low, high]) => [
      {xAxis: Math.max(low, first), itemStyle: {color: colour.series[2], opacity: band(within)}}, {xAxis: Math.max(high, low * 1.003)},
    ]);
    return {
      ...base(colour, isNarrow),
      xAxis: bytesAxis(colour, first, last),
      yAxis: latencyAxis(colour, data, {min: Math.max(0, best - 0.1 * (top - best)), max: top}),
      tooltip: {
        ...base(colour).tooltip, trigger: "item",
        formatter: ({seriesName, data: one}) => `${seriesName}: ${one.text ?? SluiceText.bytes(one.value[0])}\n${SluiceText.time(one.us ?? one.value[1])}`,
      },
      series: [
        {
          ...styleOf(colour, 0), name: "latency", type: "line", symbol: "circle", symbolSize: 3, clip: true,
          data: shown.filter(([size]) => size >= first).map((value) => ({value})), markArea: {silent: true, data: bands},
        },
        ...marks,
      ],
    };
  };

  // --- one cost from a quarter of it to four times as much ---------------------------------------

  makers.sweep = (data) => (colour, isNarrow) => ({
    ...base(colour, isNarrow),
    xAxis: axis(colour, {
      type: "log", logBase: 2, min: data.factors[0], max: data.factors.at(-1), name: "times the cost", nameGap: 26, splitLine: {show: false},
      axisLabel: {color: colour.quiet, formatter: (factor) => ({0.25: "¼", 0.5: "½"})[factor] ?? String(factor)},
    }),
    yAxis: latencyAxis(colour, data, {min: 0}),
    tooltip: {
      ...base(colour).tooltip,
      formatter: (found) => [`${Number(found[0].value[0].toPrecision(3))} times the cost`, ...found.map((one) => `${one.seriesName}: ${SluiceText.time(one.value[1])}`)].join("\n"),
    },
    series: data.lines.map(([name, values], rank) => ({
      ...styleOf(colour, rank), name, type: "line", symbolSize: 7,
      data: data.factors.map((factor, i) => [factor, values[i]]).filter(([, us]) => us !== null),
    })),
  });

  // --- latency against the number of fragments --------------------------------------------------

  makers.counts = (data) => (colour, isNarrow) => {
    const points = (values) => data.fragments.map((k, i) => [k, values[i]]).filter(([, us]) => us !== null);
    const curve = (name, values, more) => ({name, type: "line", data: points(values), symbolSize: 5, ...more});
    const mark = (name, point, symbol, more) => point && point[1] !== null
      ? [{name, type: "line", lineStyle: {width: 0}, data: [point], symbol, symbolSize: 13, z: 5, ...more}] : [];
    const [equal, optimum, bound, fixed] = [colour.series[1], colour.series[0], colour.series[3], colour.series[1]];
    // What lies far above the answer is of no interest: the curves leave the picture there.
    const minUs = Math.min(data.answer[1] ?? Infinity, ...data.bound_us.filter((us) => us !== null));
    const maxUs = Math.max(...data.equal_us.filter((us) => us !== null));
    const topUs = Math.min(maxUs, 1.4 * (data.answer[1] ?? maxUs));
    const height = Math.max(0, topUs - minUs);
    const valueAxis = {type: "value", min: Math.max(0, minUs - 0.12 * height), max: topUs + 0.02 * height};
    return {
      ...base(colour, isNarrow),
      xAxis: axis(colour, {
        ...(data.has_steps ? {type: "value", minInterval: 1, min: 1, max: "dataMax"} : {type: "log", logBase: 2, min: 1, max: data.fragments.at(-1)}),
        name: "fragments", nameGap: 26, splitLine: {show: false},
      }),
      yAxis: axis(colour, {
        ...valueAxis, name: `latency, ${data.unit}`, nameLocation: "end", nameGap: 10,
        nameTextStyle: {color: colour.quiet, align: "left"},
        axisLabel: {color: colour.quiet, showMinLabel: false, showMaxLabel: false, formatter: (us) => String(Number((us / data.us).toPrecision(4)))},
      }),
      tooltip: {
        ...base(colour).tooltip,
        formatter: (found) => {
          const k = found[0].value[0];
          const lines = found.map((one) => `${one.seriesName}: ${SluiceText.time(one.value[1])}`);
          return [`${k} fragment${k === 1 ? "" : "s"}`, ...lines].join("\n");
        },
      },
      series: [
        curve("equal fragments", data.equal_us, {itemStyle: {color: equal}, lineStyle: {color: equal, width: 1.5}, symbol: "none"}),
        curve("best sizes", data.best_us, {itemStyle: {color: optimum}, lineStyle: {color: optimum, width: 2}, symbol: "circle"}),
        curve("proven bound of this model", data.bound_us, {itemStyle: {color: bound}, lineStyle: {color: bound, width: 1.5, type: "dashed"}, symbol: "none", areaStyle: {color: bound, opacity: 0.1, origin: "start"}}),
        ...mark("best fixed size", data.fixed, "triangle", {itemStyle: {color: fixed}}),
        ...mark("answer", data.answer, "diamond", {
          itemStyle: {color: colour.text, borderColor: colour.panel, borderWidth: 1.5},
          label: {show: true, position: data.answer[0] > 1 ? "bottom" : "right", distance: 7, color: colour.text, formatter: `${data.answer[0]}: ${data.answer_text}`},
        }),
      ],
    };
  };

  // --- latency against the size of the message --------------------------------------------------

  const MIN_SHOWN = 0.1; // per cent above the best: what is nearer stands on this line

  makers.sizes = (data, choice) => (colour, isNarrow) => {
    const isRatio = choice() === "ratio";
    const above = (us, i) => Math.max(MIN_SHOWN, 100 * (us / data.best_us[i] - 1));
    const value = (us, i) => (us === null ? null : isRatio ? above(us, i) : us);
    const series = data.lines.map((line, rank) => {
      const style = styleOf(colour, rank);
      return {
        ...style, name: line.name, type: "line", symbolSize: 7, emphasis: {focus: "series"},
        data: line.latency_us.map((us, i) => ({
          value: value(us, i),
          ...(line.is_partial[i] ? {itemStyle: {color: colour.panel, borderColor: style.itemStyle.color, borderWidth: 1.5}} : {}),
        })),
      };
    });
    const own = {
      silent: true, symbol: "none", label: {show: true, formatter: "this message", color: colour.quiet, position: "end", distance: 3},
      lineStyle: {color: colour.quiet, type: "dotted"}, data: [{xAxis: data.own}],
    };
    if (series.length) {
      series[0].markLine = own;
    }
    return {
      ...base(colour, isNarrow),
      xAxis: axis(colour, {type: "category", data: data.labels, name: "size of the message", nameGap: 26, boundaryGap: false, splitLine: {show: false}}),
      yAxis: axis(colour, {
        type: "log", ...(isRatio ? {min: MIN_SHOWN} : {}),
        name: isRatio ? "latency above the best known" : "latency", nameLocation: "end", nameGap: 10,
        nameTextStyle: {color: colour.quiet, align: "left"},
        axisLabel: {color: colour.quiet, formatter: isRatio ? (part) => (part <= MIN_SHOWN ? `≤ ${MIN_SHOWN} %` : `${part} %`) : (us) => SluiceText.givenTime(us)},
      }),
      tooltip: {
        ...base(colour).tooltip,
        formatter: (found) => {
          const at = found[0].dataIndex;
          const rows = data.lines
            .map((line) => ({line, us: line.latency_us[at]}))
            .filter((one) => one.us !== null)
            .sort((one, other) => one.us - other.us)
            .map(({line, us}) => `${line.name}: ${SluiceText.time(us)}${us > data.best_us[at] ? `, ${SluiceText.excess(us, data.best_us[at])}` : ""}${line.is_partial[at] ? " (ended by time)" : ""}`);
          return [data.labels[at], ...rows].join("\n");
        },
      },
      series,
    };
  };

  // --- what has arrived by when ------------------------------------------------------------------

  makers.arrivals = (data) => (colour, isNarrow) => {
    const ends = data.lines.map((line) => line.points.at(-1)[0]);
    const firsts = data.lines.map((line) => line.points[1][0]).filter((us) => us > 0);
    const isLog = firsts.length === ends.length && Math.max(...ends) > 20 * Math.min(...ends);
    return {
      ...base(colour, isNarrow),
      xAxis: axis(colour, {
        type: isLog ? "log" : "value", name: `time, ${data.unit}`, nameGap: 26, splitLine: {show: false},
        ...(isLog ? {min: Math.min(...firsts) / 2} : {min: 0, max: Math.max(...ends)}),
        axisLabel: {color: colour.quiet, hideOverlap: true, showMaxLabel: isLog, formatter: (us) => String(Number((us / data.us).toPrecision(3)))},
      }),
      yAxis: axis(colour, {
        type: "value", min: 0, max: 100, name: "arrived", nameLocation: "end", nameGap: 10,
        nameTextStyle: {color: colour.quiet, align: "left"}, axisLabel: {color: colour.quiet, formatter: "{value} %"},
      }),
      tooltip: {
        ...base(colour).tooltip, trigger: "item",
        formatter: ({seriesName, value}) => `${seriesName}\n${SluiceText.percent(value[1] / 100)} after ${SluiceText.time(value[0])}`,
      },
      series: data.lines.map((line, rank) => ({
        name: line.name, type: "line", step: "end", symbolSize: 5, showSymbol: line.points.length < 60,
        data: isLog ? line.points.slice(1) : line.points,
        lineStyle: {width: 2, color: colour.series[rank % SERIES], type: ["solid", "dashed", "dotted"][rank % 3]},
        itemStyle: {color: colour.series[rank % SERIES]},
      })),
    };
  };

  // --- parts of the page ------------------------------------------------------------------------

  function choiceOf(name) {
    const group = document.querySelector(`[data-choice="${name}"]`);
    return () => group?.querySelector("[aria-pressed=true]")?.value ?? "";
  }

  // Charts are drawn, and what draws them is loaded, when somebody comes near one.
  const waiting = new Map();
  const near = new IntersectionObserver((seen) => {
    seen.filter((one) => one.isIntersecting).forEach((one) => drawNow(one.target));
  }, {rootMargin: "200px"});

  function drawNow(place) {
    const make = waiting.get(place);
    waiting.delete(place);
    near.unobserve(place);
    return make ? mount(place, make) : null;
  }

  /** Draw every chart of the page, also those that nobody has come near to. */
  const drawEvery = () => Promise.all([...waiting.keys()].filter((place) => place.isConnected).map(drawNow));

  /** Have `make(data, choice)` give the option of a chart once somebody comes near it. */
  function startWith(place, make) {
    const data = Sluice.data(`${place.dataset.chart}-data`);
    if (data && make) {
      disposeRemoved();
      waiting.set(place, make(data, choiceOf(place.dataset.chart)));
      near.observe(place);
    }
  }

  function startChart(place) {
    startWith(place, makers[Sluice.data(`${place.dataset.chart}-data`)?.kind]);
  }

  function startChoice(group) {
    group.addEventListener("click", (event) => {
      const chosen = event.target.closest("button");
      if (!chosen) {
        return;
      }
      group.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", String(one === chosen)));
      const place = new URL(location.href);
      place.searchParams.set(group.dataset.name, chosen.value);
      history.replaceState(history.state, "", place);
      drawAll();
      Sluice.say(`Now shown: ${chosen.textContent}`);
    });
  }

  Sluice.onPart("[data-chart]", startChart);
  Sluice.onPart("[data-choice]", startChoice);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  document.addEventListener("htmx:after:swap", disposeRemoved);
  window.addEventListener("beforeprint", drawEvery);
  return {base, axis, mount, colours, drawEvery, startWith, styleOf, bytesAxis, latencyAxis};
})();
