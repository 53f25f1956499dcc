// Memory by kind per stage against its limit, with the highest point of the step.
import {h, part, s, setText, updateTable} from './dom.js';
import {bytes, zero} from './format.js';
import {hasEnded, placeOf, whyNoStages} from './job_facts.js';
import {swatch} from './phases.js';

const KINDS = [['parameters', 'Parameters', 'P'], ['gradients', 'Gradients', 'G'], ['optimizer', 'Optimizer', 'O'],
               ['activations', 'Activations', 'A']];
const UNBALANCED = 1.25;
const NEAR_LIMIT = 0.9;

function total(memory) {
  return KINDS.reduce((sum, [name]) => sum + zero(memory?.[name]), 0);
}

function rowOf(store, stage, index) {
  const telemetry = store.stageAtWork(stage.name)?.telemetry;
  const peaks = [telemetry?.memory_peak, stage.memory_peak].filter(Boolean);
  // The step's composition at its highest point tells more than the instant of a heartbeat.
  const shown = peaks.reduce((best, memory) => (total(memory) > total(best) ? memory : best), telemetry?.memory || {});
  return {index, name: stage.name, shown, now: total(telemetry?.memory), peak: total(shown),
          limit: zero(telemetry?.memory_limit_bytes)};
}

/** What to do about an uneven load, in words; empty if nothing. */
export function balanceAdvice(rows) {
  const peaks = rows.map((row) => row.peak).filter((peak) => peak > 0);
  if (peaks.length < 2) return '';
  const mean = peaks.reduce((sum, peak) => sum + peak, 0) / peaks.length;
  const worst = rows.reduce((best, row) => (row.peak > best.peak ? row : best));
  const ratio = worst.peak / mean;
  const near = rows.filter((row) => row.limit > 0 && row.peak > NEAR_LIMIT * row.limit);
  if (near.length > 0) {
    return `Stage ${near[0].index} is at ${Math.round(100 * near[0].peak / near[0].limit)} % of its limit: fewer layers there, more micro-batches or more rematerialization`;
  }
  if (ratio < UNBALANCED) return `Balanced: the largest stage has ${ratio.toFixed(2)}× the mean`;
  return `Stage ${worst.index} peaks at ${ratio.toFixed(1)}× the mean: a cut that gives it fewer layers evens this out`;
}

function bar(row, scale) {
  const width = (value) => `${Math.max(0, 100 * value / scale)}%`;
  const drawing = s('svg', {class: 'memory-bar', role: 'img', 'aria-label':
    `Stage ${row.index}: peak ${bytes(row.peak)}${row.limit > 0 ? ` of ${bytes(row.limit)}` : ', no limit'}`});
  let used = 0;
  for (const [name, title, letter] of KINDS) {
    const value = zero(row.shown[name]);
    if (value <= 0) continue;
    drawing.append(s('g', {}, s('title', {}, `${title} ${bytes(value)}`),
      s('rect', {class: `memory memory-${name}`, x: width(used), width: width(value), y: 3, height: 18})));
    if (value / scale > 0.06) {
      drawing.append(s('text', {class: `on-phase on-memory-${name}`, x: width(used + value / 2), y: 12, dy: '0.35em'}, letter));
    }
    used += value;
  }
  if (row.now > 0) drawing.append(s('rect', {class: 'memory-now', x: width(row.now), y: 21, width: 2, height: 3}));
  drawing.append(s('rect', {class: 'memory-peak', x: width(row.peak), y: 0, width: 2, height: 24}));
  if (row.limit > 0) drawing.append(s('rect', {class: 'memory-limit', x: width(row.limit), y: 0, width: 2, height: 24}));
  return drawing;
}

export function updateMemory(root, store) {
  const legend = part(root, 'memory-legend');
  if (!legend.firstChild) {
    legend.append(...KINDS.map(([name, title]) => h('li', {}, swatch({class: `memory memory-${name}`}), title)),
      ...[['peak', 'Peak'], ['now', 'In use now'], ['limit', 'Limit']].map(([name, title]) =>
        h('li', {}, s('svg', {class: 'swatch bare', width: 4, height: 14, 'aria-hidden': 'true'},
                      s('rect', {class: `memory-${name}`, x: 1, y: name === 'now' ? 9 : 0, width: 2, height: name === 'now' ? 5 : 14})), title)));
  }
  const stages = (store.job?.stages || []).map((stage, index) => rowOf(store, stage, placeOf(stage, index)));
  // After the end nobody tells, unless the job's last report is at hand.
  const rows = hasEnded(store.job) ? stages.filter((row) => row.peak > 0) : stages;
  const key = JSON.stringify([whyNoStages(store.job), rows]);
  const host = part(root, 'memory');
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  setText(part(root, 'memory-note'), balanceAdvice(rows));
  const scale = Math.max(1, ...rows.map((row) => Math.max(row.peak, row.limit))) * 1.006;
  host.replaceChildren(rows.length === 0 ? h('p', {class: 'note'}, whyNoStages(store.job)) :
    h('ul', {class: 'strip memory-list'}, rows.map((row) => h('li', {},
      h('span', {class: 'strip-label'}, h('strong', {}, `Stage ${row.index}`),
        h('span', {class: 'note'}, row.limit > 0 ? `${bytes(row.peak)} of ${bytes(row.limit)}` : `${bytes(row.peak)} peak`)),
      bar(row, scale)))));
  updateTable(part(root, 'memory-table'), 'Memory by kind at the peak',
    [{title: 'Stage'}, ...KINDS.map(([, title]) => ({title, number: true})), {title: 'Peak', number: true}, {title: 'In use', number: true},
     {title: 'Limit', number: true}],
    rows.map((row) => [`Stage ${row.index}`, ...KINDS.map(([name]) => bytes(row.shown[name])), bytes(row.peak), bytes(row.now),
                       row.limit > 0 ? bytes(row.limit) : 'none']), whyNoStages(store.job));
}
