// Numbers and times as a reader wants them: a few digits and a unit.

const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function short(value) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  for (const [size, prefix] of PREFIXES) {
    if (Math.abs(value) >= size * 0.9995) return `${threeDigits(value / size)} ${prefix}`;
  }
  return threeDigits(value);
}

export function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en");
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !isFinite(seconds)) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 0.9995) return `${threeDigits(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const rest = whole % 60 ? ` ${whole % 60} s` : "";
  if (whole < 3600) return `${Math.floor(whole / 60)} min${rest}`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

// For axes: one unit, no words between.
export function time(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 120) return seconds < 1 ? duration(seconds) : `${Number(seconds.toFixed(1))} s`;
  return seconds < 7200 ? `${Number((seconds / 60).toFixed(1))} min` : `${Number((seconds / 3600).toFixed(1))} h`;
}

export function plural(number, noun) {
  const many = noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return number === 1 ? `1 ${noun}` : `${count(number)} ${many}`;
}

export function clock(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 19);
}

export function moment(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

export function degrees(value, signs) {
  const size = `${Math.abs(Number(value.toFixed(2)))}°`;
  return value === 0 ? size : size + signs[value > 0 ? 1 : 0];
}

function threeDigits(value) {
  const size = Math.abs(value);
  return String(Number(value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)));
}
