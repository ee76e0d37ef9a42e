// The page of a message that is cut between items: what every cap costs, as steps, beside the list.
"use strict";

(() => {
  const {base, startWith, styleOf, bytesAxis, latencyAxis} = window.SluiceCharts;
  const FARTHEST = 3; // times the list: marks beyond stand at the edge of the picture
  const HEIGHT = [0.02, 0.5]; // of the list: how much above it is shown, at least and at most

  /** The highest latency that is shown: twice as far above the list as half of the steps are. */
  function highest(data) {
    const marked = data.marks.map(([, , , us]) => us).filter((us) => us <= FARTHEST * data.list_us);
    const known = data.latency_us.filter((us) => us !== null).sort((one, other) => one - other);
    const far = 2 * (Math.max(known[known.length >> 1] ?? 0, ...marked) - data.list_us);
    const [least, most] = HEIGHT.map((share) => share * data.list_us);
    return Math.max(data.list_us + Math.min(most, Math.max(least, far)), 1.05 * Math.max(0, ...marked) - 0.05 * data.list_us);
  }

  const caps = (data) => (colour, isNarrow) => {
    const top = highest(data);
    const steps = data.caps.map((cap, i) => [cap, data.latency_us[i]]);
    const places = data.marks.map(([, , cap]) => cap);
    const good = steps.findIndex(([, us]) => us !== null && us <= top);
    // Some room to the left shows that smaller caps cost more.
    const first = Math.max(data.first_bytes, Math.min(...places, steps[Math.max(0, good)][0]) / 4);
    const last = data.last_bytes;
    // The step that holds at the left edge begins there.
    const begun = steps.findLastIndex(([cap]) => cap <= first);
    const shown = [[first, steps[Math.max(0, begun)][1]], ...steps.slice(begun + 1), [last, steps.at(-1)[1]]];
    const style = (rank) => styleOf(colour, rank);
    const beside = (cap) => (cap ** 2 > first * last ? "left" : "right");
    const marks = data.marks.map(([name, text, cap, us], rank) => ({
      ...style(rank + 2), lineStyle: {width: 0}, name, type: "line", symbolSize: 14, z: 6 + rank,
      label: {
        show: true, color: colour.text, backgroundColor: colour.panel, padding: 2,
        formatter: ({data: at}) => at.text, position: name === "best cap" || us > top ? "bottom" : "top", align: beside(cap) === "left" ? "right" : "left",
      },
      data: [{value: [cap, Math.min(us, top)], us, text}],
    }));
    const list = {
      ...style(1), name: "the list", type: "line", symbol: "none", z: 4, data: [[first, data.list_us], [last, data.list_us]],
    };
    const byBytes = bytesAxis(colour, first, last);
    return {
      ...base(colour, isNarrow),
      xAxis: {...byBytes, name: "cap", axisLabel: {...byBytes.axisLabel, showMaxLabel: false}},
      yAxis: latencyAxis(colour, data, {min: Math.max(0, data.list_us - 0.1 * (top - data.list_us)), max: top}),
      tooltip: {
        ...base(colour).tooltip, axisPointer: {lineStyle: {color: colour.quiet}, snap: false},
        formatter: (found) => tip(data, found[0].axisValue),
      },
      series: [
        {...style(0), name: "one cap", type: "line", step: "end", symbol: "none", showSymbol: false, clip: true, connectNulls: false, data: shown},
        list,
        ...marks,
      ],
    };
  };

  /** What the cap below the pointer costs: that of the step that holds there. */
  function tip(data, cap) {
    const at = Math.max(0, data.caps.findLastIndex((one) => one <= cap));
    const us = data.latency_us[at];
    const words = us === null ? "not admitted" : `${SluiceText.time(us)}${us > data.list_us ? `, ${SluiceText.excess(us, data.list_us)}` : ""}`;
    return [`cap ${SluiceText.bytes(Math.round(data.caps[at]))}: ${words}`, `the list: ${data.list_text}`].join("\n");
  }

  Sluice.onPart("[data-chart=caps]", (place) => startWith(place, caps));
})();
