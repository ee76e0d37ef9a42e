// The units of the stage table's columns, as the server names them: how cells and headers write them,
// how to turn one into another so that turning back gives what was there, and numbers as people write
// them. What may mean two things is never guessed.
"use strict";

window.SluiceUnits = (() => {
  const UNSPECIFIED = "unspecified"; // a column's unit while it is not chosen
  const PLAIN = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;
  const CELL = /^([+-]?[.,]?\d[\d.,'’\s]*(?:e[+-]?\d{1,3})?)(\D.*)?$/i;
  const IN_GROUPS = /^[+-]?\d{1,3}([\s'’]\d{3})+([.,]\d+)?$/; // 1 200,5
  const ONE_COMMA = /^[+-]?[1-9]\d{0,2},\d{3}$/; // 1200 or 1.2
  const ONE_POINT = /^[+-]?[1-9]\d{0,2}\.\d{3}$/; // 1.2, or 1200 among decimal commas
  const COMMAS_GROUP = /^[+-]?[1-9]\d{0,2}((,\d{3})+\.\d+|(,\d{3}){2,})$/; // 12,345.5
  const POINTS_GROUP = /^[+-]?[1-9]\d{0,2}((\.\d{3})+,\d+|(\.\d{3}){2,})$/; // 12.345,5
  const DECIMAL_COMMA = /^[+-]?\d*,\d+$/; // 12,6
  const POWERS = {"": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40};
  let table = null;

  /** By column and unit: {words, names, factor or inverse}. */
  function units() {
    if (!table) {
      table = window.Sluice.data("unit-table");
      for (const column of Object.values(table)) {
        for (const unit of Object.values(column)) unit.names = new RegExp(`^(${unit.spelling})$`);
      }
    }
    return table;
  }

  /** The number that a text is, or NaN. */
  function read(text) {
    return PLAIN.test(text.trim()) ? Number(text) : NaN;
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
    const [old, wanted] = [units()[column][from], units()[column][to]];
    const made = old && wanted ? fromBase(wanted, base(old, read(text))) : NaN;
    return Number.isFinite(made) ? write(made) : null;
  }

  /** The unit that a text names, as {column, unit}, or null. */
  function named(text) {
    const name = text.replace(/[\s_]+/g, "").replace(/[µμ]/g, "u");
    for (const [column, known] of Object.entries(units())) {
      const found = Object.keys(known).find((unit) => known[unit].names.test(name));
      if (found) return {column, unit: found};
    }
    return null;
  }

  function unitName(column, unit) {
    return units()[column][unit].words;
  }

  function isBandwidth(unit) {
    return Boolean(units().cost[unit]?.inverse);
  }

  /** A cell's number and what follows it, both as written; the number is "" where there is none. */
  function split(text) {
    const found = text.trim().match(CELL);
    return found ? {number: found[1].trim(), unit: (found[2] || "").trim()} : {number: "", unit: text.trim()};
  }

  function ungrouped(text) {
    return IN_GROUPS.test(text) ? text.replace(/[\s'’]/g, "") : text;
  }

  /** Which sign begins the decimals in these numbers of one column: "," or ".", or null if unsure. */
  function decimalSign(numbers) {
    const texts = numbers.map(ungrouped);
    const comma = texts.some((one) => POINTS_GROUP.test(one) || (DECIMAL_COMMA.test(one) && !ONE_COMMA.test(one)
      && !COMMAS_GROUP.test(one)));
    const point = texts.some((one) => COMMAS_GROUP.test(one)
      || (PLAIN.test(one) && one.includes(".") && !ONE_POINT.test(one)));
    return comma === point ? null : comma ? "," : ".";
  }

  /** A number as a plain one, where its column begins decimals with this sign; null where it may be two. */
  function plain(number, sign) {
    const text = ungrouped(number);
    if (ONE_COMMA.test(text)) return sign === null ? null : text.replace(",", sign === "," ? "." : "");
    if (ONE_POINT.test(text) && sign === ",") return null;
    if (COMMAS_GROUP.test(text)) return text.replaceAll(",", "");
    if (POINTS_GROUP.test(text)) return text.replaceAll(".", "").replace(",", ".");
    return DECIMAL_COMMA.test(text) ? text.replace(",", ".") : text;
  }

  /** What is wrong with a cell of a cost, or "". */
  function wrong(text, column) {
    const {number, unit} = split(text);
    if (ONE_COMMA.test(number)) {
      return `${number.replace(",", "")} or ${Number(number.replace(",", "."))}? Write it without the comma`;
    }
    if (unit.endsWith("?")) return `“${text}” may mean two things: write the number alone, or with its unit`;
    if (Number.isNaN(read(number)) || (unit && named(unit)?.column !== column)) return `“${shown(text)}” is not read`;
    return read(number) < 0 ? "expected 0 or more" : "";
  }

  function shown(text) {
    return text.length > 24 ? `${text.slice(0, 24)}…` : text;
  }

  /** The bytes that a size with a binary or no unit is, or NaN. */
  function bytes(text) {
    const found = text.trim().match(/^(\d+(?:\.\d+)?)\s*([kmgt]?)(ib|b)?$/i);
    if (!found) return NaN;
    const decimal = found[2] && found[3]?.toLowerCase() === "b";
    const unit = decimal ? 1000 ** ("kmgt".indexOf(found[2].toLowerCase()) + 1) : POWERS[found[2].toLowerCase()];
    return Number(found[1]) * unit;
  }

  return {UNSPECIFIED, read, convert, named, split, decimalSign, plain, wrong, shown, bytes, unitName, isBandwidth};
})();
