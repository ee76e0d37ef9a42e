// A solve while it runs: figures, the curve of what was known when, and its end.
"use strict";

(() => {
  const DRAWN_MS = 1000; // the curves go on to this moment
  const STEPS = [["best_latency_us", "best so far"], ["lower_bound_us", "proven bound of this model"]];
  const TEXTS = [SluiceText.time, (us) => SluiceText.proven(null, us).bound];

  /** Put the page of this address in the place of this one, as a link would. */
  function show(address) {
    htmx.ajax("GET", address, {target: "#main", select: "#main", swap: "outerHTML"});
  }

  /** The points of one curve: a step at each improvement, and on to now. */
  function stepsOf(progress, name) {
    const points = progress.history.map((point) => [point.elapsed_s, point[name]]);
    if (points.length) {
      const last = points[points.length - 1];
      points.push([Math.max(last[0], progress.elapsed_s), last[1]]);
    }
    return points;
  }

  // No less than a hundredth of the latency from top to bottom: a gap of nothing fills no picture.
  function ends({min, max}) {
    const apart = Math.max(0, 0.01 * max - (max - min)) / 2;
    const unit = 10 ** Math.floor(Math.log10(0.01 * max || 1));
    return [Math.floor((min - apart) / unit) * unit, Math.ceil((max + apart) / unit) * unit];
  }

  function option(progress, colour, isNarrow) {
    const us = progress.history.flatMap((point) => STEPS.map(([name]) => point[name]));
    const isWide = us.length > 0 && Math.min(...us) > 0 && Math.max(...us) > 20 * Math.min(...us);
    return {
      ...SluiceCharts.base(colour, isNarrow),
      xAxis: SluiceCharts.axis(colour, {type: "value", name: "time, s", nameGap: 28, min: 0, splitLine: {show: false}}),
      yAxis: SluiceCharts.axis(colour, {
        type: isWide ? "log" : "value", scale: true, ...(isWide ? {} : {min: (of) => ends(of)[0], max: (of) => ends(of)[1]}), name: "latency", nameLocation: "end",
        nameTextStyle: {color: colour.quiet, align: "left"},
        axisLabel: {color: colour.quiet, formatter: SluiceText.givenTime},
      }),
      tooltip: {
        ...SluiceCharts.base(colour).tooltip,
        formatter: (found) => [`after ${SluiceJob.formatSeconds(found[0].value[0])}`,
          ...found.map((one) => `${one.seriesName}: ${TEXTS[one.seriesIndex](one.value[1])}`)].join("\n"),
      },
      series: STEPS.map(([name, label], at) => ({
        name: label, type: "line", step: "end", data: stepsOf(progress, name), symbolSize: 6,
        showSymbol: progress.history.length < 40, color: colour.series[at],
        lineStyle: {width: 2, type: at ? "dashed" : "solid"},
      })),
    };
  }

  function cell(text) {
    const made = document.createElement("td");
    made.className = "number";
    made.textContent = text;
    return made;
  }

  function fillRows(history) {
    const rows = document.getElementById("job-rows");
    if (!rows || !history.length) {
      return;
    }
    rows.replaceChildren(...history.slice(-40).map((point) => {
      const row = document.createElement("tr");
      const {latency, bound, gap} = SluiceText.proven(point.best_latency_us, point.lower_bound_us);
      row.append(...[`${point.elapsed_s.toFixed(1)} s`, latency, bound, gap].map(cell));
      return row;
    }));
  }

  class Solve {
    constructor(part) {
      this.progress = Sluice.data("job-data")?.progress;
      this.chart = null;
      this.shownBest = this.progress?.best_latency_us ?? null;
      this.drawnAt = 0;
      this.units = part.dataset.units;
      this.bar = part.querySelector("progress");
      this.follower = new SluiceJob.Follower(part, part.dataset.job, {
        reported: (job) => this.reported(job),
        ended: (job) => this.ended(job),
        ticked: (elapsed) => this.ticked(elapsed),
      });
      this.drawChart();
      if (part.dataset.open === "yes") {
        this.follower.follow();
      }
    }

    reported(job) {
      this.progress = job.progress;
      this.putFigures(job);
      this.countCells(job.progress);
      fillRows(job.progress.history);
      this.drawChart();
    }

    countCells({steps_done: done, steps_total: total}) {
      if (total) {
        this.put("steps", SluiceJob.formatSteps(done, total, "cells"));
      }
      if (total && this.bar?.dataset.counts !== undefined) {
        this.bar.max = total;
        this.bar.value = done;
      }
    }

    putFigures(job) {
      const {best_latency_us: best, lower_bound_us: bound} = job.progress;
      if (best === null) {
        return;
      }
      const known = SluiceText.proven(best, bound);
      this.put("best", known.latency);
      this.put("bound", known.bound);
      this.put("gap", known.gap);
      this.put("fragments", job.best ? SluiceText.count(job.best.fragments) : "–");
      if (this.shownBest === null) {
        Sluice.say(`A first answer: ${known.latency}`);
      }
      this.shownBest = best;
    }

    ended(job) {
      if (job.state === "done" && job.answer_id) {
        Sluice.say("Done: the answer follows");
        location.replace(`${Sluice.root}/ui/answers/${job.answer_id}${this.units}`);
        return;
      }
      show(location.pathname + this.units); // which announces how it ended, as after a Cancel
    }

    ticked(elapsed) {
      if (performance.now() - this.drawnAt > DRAWN_MS && this.progress) {
        this.progress.elapsed_s = elapsed;
        this.drawChart();
      }
      if (this.bar?.dataset.counts === undefined && this.bar) {
        this.bar.value = Math.min(this.bar.max, elapsed);
      }
    }

    put(name, text) {
      this.follower.put(name, text);
    }

    async drawChart() {
      const place = document.querySelector("[data-job-chart]");
      if (!place || !this.progress?.history.length) {
        return;
      }
      place.hidden = false;
      this.drawnAt = performance.now();
      this.chart ??= SluiceCharts.mount(place, (colour, isNarrow) => option(this.progress, colour, isNarrow));
      (await this.chart)?.draw();
    }
  }

  Sluice.onPart("[data-job]", (part) => new Solve(part));
})();
