// The units of the stage table's columns: how to name them, and how to turn one into another so that
// turning back gives what was there.
"use strict";

window.SluiceUnits = (() => {
  // Each to µs, or to ns a byte. A bandwidth is an inverse; 1e9 bytes a second are 1 ns a byte.
  const UNITS = {
    overhead: {
      us: {factor: 1},
      ns: {factor: 1e-3},
      ms: {factor: 1e3},
    },
    cost: {
      ns_per_byte: {factor: 1},
      us_per_kb: {factor: 1},
      us_per_kib: {factor: 1000 / 1024},
      gb_per_s: {inverse: 1},
      gbit_per_s: {inverse: 8},
      mib_per_s: {inverse: 1e9 / 2 ** 20},
    },
  };

  // As spreadsheets write them; b and B differ, K and k do not.
  const NAMES = [
    ["overhead", "us", /^([uµμ]s|microsec(onds?)?|usec)$/],
    ["overhead", "ns", /^(ns|nanosec(onds?)?|nsec)$/],
    ["overhead", "ms", /^(ms|millisec(onds?)?|msec)$/],
    ["cost", "ns_per_byte", /^ns\/(b|B|bytes?)$/],
    ["cost", "us_per_kib", /^[uµμ]s\/[kK]i[bB]$/],
    ["cost", "us_per_kb", /^[uµμ]s\/[kK][bB]$/],
    ["cost", "gbit_per_s", /^(G(b|bit|bits)\/s|Gbps|Gbit)$/],
    ["cost", "gb_per_s", /^(GB\/s|GBps|Gbytes?\/s)$/],
    ["cost", "mib_per_s", /^(MiB\/s|MiBps)$/],
  ];

  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;

  /** The number that a cell holds, or NaN. */
  function read(text) {
    return NUMBER.test(text.trim()) ? Number(text) : NaN;
  }

  /** The shortest text of a number: without the last digits' noise where twelve say as much. */
  function write(value) {
    const short = Number(value.toPrecision(12));
    return String(Math.abs(short - value) <= 1e-15 * Math.abs(value) ? short : value);
  }

  function base(unit, value) {
    return unit.inverse ? unit.inverse / value : value * unit.factor;
  }

  function fromBase(unit, value) {
    return unit.inverse ? unit.inverse / value : value / unit.factor;
  }

  /** A cell's text in another unit of its column; null where it has no such value. */
  function convert(column, text, from, to) {
    const value = read(text);
    const made = fromBase(UNITS[column][to], base(UNITS[column][from], value));
    return Number.isFinite(made) ? write(made) : null;
  }

  /** The unit that a text names, as {column, unit}, or null. */
  function named(text) {
    const found = NAMES.find(([, , pattern]) => pattern.test(text.replace(/\s+/g, "")));
    return found ? {column: found[0], unit: found[1]} : null;
  }

  /** A number and the unit written after it, as {number, column, unit}, or null. */
  function measured(text) {
    const found = text.match(/^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*([a-zµμ].*)$/i);
    const unit = found && named(found[2]);
    return unit && {number: found[1], ...unit};
  }

  return {read, convert, named, measured};
})();
