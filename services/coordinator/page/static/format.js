// Numbers as people read them. Every function takes what JSON has: 64-bit integers and NaN come as strings.

const NONE = '–';

/** A number from JSON; NaN where there is none. */
export function num(value) {
  if (value === null || value === undefined || value === '') return NaN;
  return Number(value);
}

/** Like num, but 0 where there is none: for sums. */
export function zero(value) {
  const number = num(value);
  return Number.isFinite(number) ? number : 0;
}

export function integer(value) {
  const number = num(value);
  return Number.isFinite(number) ? Math.round(number).toLocaleString('en-US') : NONE;
}

/** Fixed digits; infinities and NaN by name, since a loss can be either. */
export function decimal(value, digits = 3) {
  if (value === null || value === undefined || value === '') return NONE;
  const number = num(value);
  if (Number.isNaN(number)) return 'NaN';
  if (!Number.isFinite(number)) return number > 0 ? '∞' : '−∞';
  return number.toFixed(digits);
}

export function scientific(value) {
  const number = num(value);
  if (!Number.isFinite(number)) return NONE;
  if (number === 0) return '0';
  const size = Math.abs(number);
  if (size >= 0.01 && size < 10000) return String(Number(number.toPrecision(3)));
  return Number(number.toPrecision(3)).toExponential().replace('e+', 'e').replaceAll('-', '−');
}

export function percent(ratio, digits = 1) {
  const number = num(ratio);
  return Number.isFinite(number) ? `${(number * 100).toFixed(digits)} %` : NONE;
}

/** Large counts: 12.3 k, 4.56 M. */
export function compact(value) {
  const number = num(value);
  if (!Number.isFinite(number)) return NONE;
  for (const [limit, unit] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(number) >= limit) return `${(number / limit).toPrecision(3)} ${unit}`;
  }
  return number >= 100 || Number.isInteger(number) ? number.toFixed(0) : number.toPrecision(3);
}

export function bytes(value) {
  const number = num(value);
  if (!Number.isFinite(number)) return NONE;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let size = number;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size.toFixed(0) : size >= 100 ? size.toFixed(0) : size.toPrecision(3)} ${units[unit]}`;
}

/** Short spans with a fitting unit: 3.42 ms, 1.25 s. */
export function span(seconds) {
  const number = num(seconds);
  if (!Number.isFinite(number)) return NONE;
  if (number === 0) return '0 s';
  if (number < 1e-3) return `${(number * 1e6).toPrecision(3)} µs`;
  if (number < 1) return `${(number * 1e3).toPrecision(3)} ms`;
  if (number < 100) return `${number.toPrecision(3)} s`;
  return duration(number);
}

/** Long spans: 2 d 3 h, 1 h 02 min, 3 min 05 s, 12 s. */
export function duration(seconds) {
  const number = num(seconds);
  if (!Number.isFinite(number) || number < 0) return NONE;
  const whole = Math.round(number);
  const pad = (part) => String(part).padStart(2, '0');
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Time of day, with the day where it is not today. */
export function clock(unixSeconds, withSeconds = true) {
  const number = num(unixSeconds);
  if (!Number.isFinite(number) || number <= 0) return NONE;
  const date = new Date(number * 1000);
  const time = date.toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit',
                                                 second: withSeconds ? '2-digit' : undefined});
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString('en-GB', {day: 'numeric', month: 'short'})} ${time}`;
}

export function dateTime(unixSeconds) {
  const number = num(unixSeconds);
  if (!Number.isFinite(number) || number <= 0) return NONE;
  return new Date(number * 1000).toLocaleString('en-GB', {day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit'});
}

/** JOB_STATE_RUNNING -> RUNNING. */
export function stateName(state) {
  return String(state || 'JOB_STATE_UNSPECIFIED').replace('JOB_STATE_', '');
}

/** Shares of a total in tenths of a percent that add up to exactly 1000: largest remainders get the rest. */
export function exactShares(values) {
  const total = values.reduce((sum, value) => sum + value, 0);
  if (!(total > 0)) return values.map(() => 0);
  const exact = values.map((value) => value / total * 1000);
  const shares = exact.map(Math.floor);
  const order = exact.map((value, index) => index)
                    .sort((a, b) => (exact[b] - shares[b]) - (exact[a] - shares[a]));
  let rest = 1000 - shares.reduce((sum, value) => sum + value, 0);
  for (const index of order) {
    if (rest <= 0) break;
    shares[index] += 1;
    rest -= 1;
  }
  return shares;
}

/** "top_5" as people say it: "top 5"; "mean_iou": "mean IoU"; "bleu": "BLEU"; "chrf2": "chrF2". */
export function measureText(name) {
  return String(name).replaceAll('_', ' ').replace(/\biou\b/, 'IoU').replace(/\bbleu\b/, 'BLEU').replace(/\bchrf2\b/, 'chrF2');
}

/** Of one class, as "accuracy/3": there may be a thousand. */
export function isOfAClass(name) {
  return String(name).includes('/');
}

/** The share of padding of a step: it says nothing of the network, so it stands beside the throughput. */
export const PADDING = 'padding';

/** A loss as it is, a score of translations of 100; any other measure is a share. */
export function measureValue(name, value) {
  if (/(bleu|chrf2)$/.test(name)) return decimal(value, 1);
  return name === 'loss' || name.endsWith('_loss') ? decimal(value, 4) : percent(value);
}
