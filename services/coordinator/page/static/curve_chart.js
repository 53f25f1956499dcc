// One Chart.js chart: some lines over steps or time, marks for checkpoints and recoveries.
import {h, s, setAttribute, setText} from './dom.js';
import {clock, compact, duration} from './format.js';

// Of another job: told apart by its dashes too.
const OTHER_DASH = [7, 3];

const COLOURS = {main: '--curve-main', faint: '--curve-faint', second: '--curve-second', level: '--curve-level',
                 other: '--curve-other', otherSecond: '--curve-other',
                 grid: '--grid', text: '--muted', checkpoint: '--mark-checkpoint', recovery: '--mark-recovery', ground: '--card', ink: '--text',
                 border: '--border'};

/** A piece of a line as the charts draw it, for a legend. */
export function lineSwatch(kind) {
  return s('svg', {class: 'swatch bare', width: 26, height: 14, 'aria-hidden': 'true'},
           s('line', {class: `curve-line-${kind}`, x1: 0, x2: 26, y1: 7, y2: 7, 'stroke-dasharray': kind === 'other' ? OTHER_DASH.join(' ') : null}));
}

/** The page's colours as a canvas needs them: resolved. */
function colours() {
  const probe = h('span', {class: 'hidden'});
  document.body.append(probe);
  const result = {};
  for (const [name, variable] of Object.entries(COLOURS)) {
    probe.style.color = `var(${variable})`;
    result[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return result;
}

/** Limits for values that hardly differ, so that rounding in the last digit is not drawn as a mountain range. */
function levelRange(lines) {
  let [low, high] = [Infinity, -Infinity];
  for (const line of lines) {
    for (const point of line.points) {
      low = Math.min(low, point.y);
      high = Math.max(high, point.y);
    }
  }
  const level = Math.abs(high);
  if (!(high - low < 1e-3 * level)) return {suggestedMin: undefined, suggestedMax: undefined};
  return {suggestedMin: low - 0.05 * level, suggestedMax: high + 0.05 * level};
}

/** The data's end is a tick too, wherever it falls: without a number where it would touch the one before. */
function crowds(index, ticks) {
  if (index < 2 || index !== ticks.length - 1) return false;
  return ticks[index].value - ticks[index - 1].value < 0.6 * (ticks[1].value - ticks[0].value);
}

/** Checkpoints: a tick at the bottom. Recoveries: a dashed line with a flag; told apart without colour. */
function markPlugin(owner) {
  return {
    id: 'marks',
    afterDatasetsDraw(chart) {
      const {ctx, chartArea: area, scales: {x}} = chart;
      ctx.save();
      for (const mark of owner.marks) {
        if (mark.x < x.min || mark.x > x.max) continue;
        const at = Math.round(x.getPixelForValue(mark.x)) + 0.5;
        ctx.strokeStyle = owner.colours[mark.kind];
        ctx.fillStyle = owner.colours[mark.kind];
        ctx.beginPath();
        if (mark.kind === 'recovery') {
          ctx.setLineDash([3, 3]);
          ctx.moveTo(at, area.top);
          ctx.lineTo(at, area.bottom);
          ctx.stroke();
          ctx.setLineDash([]);
          ctx.beginPath();
          ctx.moveTo(at, area.top);
          ctx.lineTo(at + 7, area.top + 4);
          ctx.lineTo(at, area.top + 8);
          ctx.fill();
        } else {
          ctx.moveTo(at, area.bottom);
          ctx.lineTo(at - 3.5, area.bottom + 6);
          ctx.lineTo(at + 3.5, area.bottom + 6);
          ctx.fill();
        }
      }
      ctx.restore();
    },
  };
}

export class CurveChart {
  constructor(host, curve) {
    this.curve = curve;
    this.marks = [];
    this.axis = 'step';
    this.colours = colours();
    this.canvas = h('canvas', {role: 'img', 'aria-label': curve.title});
    this.note = h('span', {class: 'note'});
    host.append(h('figure', {class: 'curve', 'data-curve': curve.name}, h('figcaption', {}, h('h3', {}, curve.title), this.note),
                  h('div', {class: 'curve-canvas'}, this.canvas)));
    this.chart = new globalThis.Chart(this.canvas, {type: 'line', data: {datasets: []}, options: this.options(), plugins: [markPlugin(this)]});
  }

  options() {
    const {format} = this.curve;
    const grid = {color: this.colours.grid, drawBorder: false, tickLength: 0};
    const ticks = {color: this.colours.text, font: {size: 11, family: getComputedStyle(document.body).fontFamily}, maxRotation: 0, padding: 6};
    const axes = {
      step: {tick: compact, title: (value) => `step ${value}`},
      time: {tick: (value) => clock(value, false), title: clock},
      elapsed: {tick: duration, title: (value) => `after ${duration(value)}`},
    };
    return {
      animation: false, responsive: true, maintainAspectRatio: false, normalized: true, parsing: false,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      layout: {padding: {top: 4, right: 6}},
      scales: {
        x: {type: 'linear', bounds: 'data', grid: {...grid, display: false},
            ticks: {...ticks, maxTicksLimit: 6, callback: (value, index, all) => (crowds(index, all) ? '' : axes[this.axis].tick(value))}},
        y: {beginAtZero: this.curve.zero === true, grid, ticks: {...ticks, maxTicksLimit: 5, callback: (value) => (this.curve.tick || format)(value)}},
      },
      plugins: {
        legend: {display: false},
        tooltip: {
          backgroundColor: this.colours.ink, titleColor: this.colours.ground, bodyColor: this.colours.ground, displayColors: false, padding: 8,
          cornerRadius: 6,
          callbacks: {
            title: (items) => (items[0] ? axes[this.axis].title(items[0].parsed.x) : ''),
            label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
          },
        },
      },
    };
  }

  dataset(line) {
    const base = {label: line.title, data: line.points, borderColor: this.colours[line.kind], backgroundColor: this.colours[line.kind],
                  pointRadius: 0, pointHitRadius: 6, borderWidth: 1.75, tension: 0};
    if (line.kind === 'faint') return {...base, borderWidth: 1, order: 3};
    // Evaluations are few and apart: diamonds, so that they are not taken for training.
    if (line.kind === 'second') return {...base, pointRadius: line.points.length > 60 ? 2 : 3.5, pointStyle: 'rectRot', borderDash: [4, 3], order: 0};
    if (line.kind === 'other') return {...base, borderDash: OTHER_DASH, order: 1};
    if (line.kind === 'otherSecond') return {...base, showLine: false, pointRadius: line.points.length > 60 ? 2 : 3.5, pointStyle: 'triangle', order: 0};
    if (line.kind === 'level') return {...base, borderDash: [6, 4], borderWidth: 1.25, order: 2};
    return {...base, order: 1};
  }

  draw(lines, marks, note, axis) {
    this.axis = axis;
    this.marks = marks;
    // From step 0 on, the ticks are round numbers.
    this.chart.options.scales.x.min = axis === 'time' ? undefined : 0;
    Object.assign(this.chart.options.scales.y, levelRange(lines));
    this.chart.data.datasets = lines.map((line) => this.dataset(line));
    this.chart.update('none');
    setText(this.note, note);
    setAttribute(this.canvas, 'aria-label', `${this.curve.title} over ${axis === 'step' ? 'steps' : 'time'}, newest: ${note}`);
  }

  recolour() {
    this.colours = colours();
    this.chart.options = this.options();
  }

  destroy() {
    this.chart.destroy();
  }
}
