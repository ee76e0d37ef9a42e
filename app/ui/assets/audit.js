// Regret against message size. The table below the chart has the same numbers.
"use strict";

Sluice.onPart(".regret-chart", (place) => {
  const data = Sluice.data(place.dataset.of);
  const chart = echarts.init(place, null, {renderer: "canvas"});
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const formatBound = (value, format) => (value === null ? "unbounded" : format(value / 100));

  function draw() {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const text = {color: color("--quiet"), fontFamily: "system-ui, sans-serif"};
    const axis = {
      axisLine: {lineStyle: {color: color("--line-strong")}},
      axisLabel: text,
      splitLine: {lineStyle: {color: color("--line")}},
      nameTextStyle: text,
    };
    const limits = data.allowed === null ? [] : [{
      yAxis: data.allowed,
      lineStyle: {color: color("--bad"), type: "dashed"},
      label: {formatter: "allowed", color: color("--bad"), position: "insideEndTop"},
    }];
    const marked = [...limits, {
      yAxis: data.average,
      lineStyle: {color: color("--line-strong"), type: "dotted"},
      label: {formatter: data.averageName, color: color("--quiet"), position: "insideStartTop"},
    }].filter((line) => line.yAxis !== null);
    chart.setOption({
      animation: false,
      aria: {enabled: false},
      textStyle: text,
      grid: {left: 8, right: 28, top: 36, bottom: 24, containLabel: true},
      legend: {top: 0, left: 0, textStyle: {color: color("--text")}, itemWidth: 22},
      tooltip: {
        trigger: "axis",
        renderMode: "richText",
        backgroundColor: color("--panel"),
        borderColor: color("--line-strong"),
        textStyle: {color: color("--text")},
        formatter: (points) => {
          const at = points[0].dataIndex;
          return `${data.names[at]}\nat least ${formatBound(data.atLeast[at], SluiceText.percent)}\nat most ${formatBound(data.atMost[at], SluiceText.gap)}`;
        },
      },
      xAxis: {...axis, type: "category", data: data.names, boundaryGap: false, name: "message size", nameLocation: "middle", nameGap: 28, axisLabel: {...text, hideOverlap: true}},
      yAxis: {...axis, type: "value", min: 0, axisLabel: {...text, formatter: "{value} %"}},
      series: [
        {
          name: "at least", type: "line", z: 3, data: data.atLeast, symbolSize: 6, itemStyle: {color: color("--series-1")},
          lineStyle: {color: color("--series-1"), width: 2},
          markLine: {silent: true, symbol: "none", data: marked},
        },
        {
          name: "at most", type: "line", data: data.atMost, symbol: "none", itemStyle: {color: color("--series-2")},
          lineStyle: {color: color("--series-2"), width: 1.5, type: "dashed"},
        },
      ],
    }, true);
  }

  draw();
  dark.addEventListener("change", draw);
  new ResizeObserver(() => chart.resize()).observe(place);
});
