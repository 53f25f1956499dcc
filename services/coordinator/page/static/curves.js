// Curves over the job's life, drawn by Chart.js.
import {CurveChart} from './curve_chart.js';
import {fillSegmented, h, part, updateTable} from './dom.js';
import {compact, decimal, integer, percent, scientific, span} from './format.js';
import {downsample, quantile, smooth} from './sample.js';

const MOST_POINTS = 2000;
const TABLE_ROWS = 20;
const REDRAW_MS = 1000;
const RECENT = 200;

const CURVES = [
  {name: 'loss', title: 'Loss', format: (value) => decimal(value, 4), tick: scientific, evaluation: true},
  {name: 'learning_rate', title: 'Learning rate', format: scientific, raw: true},
  {name: 'gradient_norm', title: 'Gradient norm', format: scientific},
  {name: 'step_seconds', title: 'Step time', format: span, quantiles: true},
  {name: 'tokens_per_second', title: 'Tokens per second', format: compact, zero: true},
  {name: 'bubble', title: 'Bubble', format: (value) => percent(value, 0), zero: true, ideal: true},
];

export class Curves {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.axis = 'step';
    this.weight = 0.6;
    const controls = part(root, 'curve-controls');
    const axis = h('fieldset', {class: 'segmented'}, h('legend', {class: 'hidden'}, 'Horizontal axis'));
    fillSegmented(axis, 'curve-axis', [['step', 'Step'], ['time', 'Time']], 'step', (value) => {
      this.axis = value;
      this.draw();
    });
    const slider = h('input', {type: 'range', min: 0, max: 0.98, step: 0.02, value: this.weight, oninput: () => {
      this.weight = Number(slider.value);
      this.draw();
    }});
    controls.append(h('label', {class: 'check'}, 'Smoothing', slider), axis);
    this.charts = CURVES.map((curve) => new CurveChart(part(root, 'curves'), curve));
    this.version = -1;
    this.drawnAt = 0;
  }

  update() {
    const series = this.store.series;
    if (series === this.series && series.version === this.version) return;
    const wait = this.drawnAt + REDRAW_MS - Date.now();
    if (wait > 0 && series === this.series && this.drawnSteps > 0) {
      if (!this.timer) this.timer = setTimeout(() => this.draw(), wait);
      return;
    }
    this.draw();
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    const series = this.store.series;
    this.series = series;
    this.version = series.version;
    this.drawnAt = Date.now();
    this.drawnSteps = series.steps.length;
    const x = (point) => (this.axis === 'step' ? point.step : point.time);
    const marks = series.marks.map((mark) => ({x: x(mark), kind: mark.kind}));
    for (const chart of this.charts) this.drawChart(chart, series, x, marks);
    this.table(series);
  }

  drawChart(chart, series, x, marks) {
    const curve = chart.curve;
    const points = series.steps.map((point) => ({x: x(point), y: point[curve.name]}));
    const lines = [];
    if (!curve.raw && this.weight > 0) lines.push({kind: 'faint', title: 'each step', points: downsample(points, MOST_POINTS)});
    lines.push({kind: 'main', title: curve.raw || this.weight === 0 ? curve.title : 'smoothed',
                points: downsample(curve.raw ? points : smooth(points, this.weight), MOST_POINTS)});
    if (curve.evaluation) {
      lines.push({kind: 'second', title: 'evaluation', points: downsample(series.evaluations.map((point) => ({x: x(point), y: point.loss})), MOST_POINTS)});
    }
    const last = series.steps[series.steps.length - 1];
    let note = last ? curve.format(last[curve.name]) : '–';
    if (curve.quantiles && last) {
      const recent = series.steps.slice(-RECENT).map((point) => point[curve.name]);
      note = `p50 ${curve.format(quantile(recent, 0.5))} · p95 ${curve.format(quantile(recent, 0.95))}`;
    }
    if (curve.ideal && this.store.job && last) {
      const ideal = Number(this.store.job.bubble_ideal);
      const first = series.steps[0];
      lines.push({kind: 'level', title: 'ideal', points: [{x: x(first), y: ideal}, {x: x(last), y: ideal}]});
      note += ` · ideal ${curve.format(ideal)}`;
    }
    chart.draw(lines, marks, note, this.axis);
  }

  table(series) {
    const rows = series.steps.slice(-TABLE_ROWS).reverse().map((point) => [integer(point.step), decimal(point.loss, 4), scientific(point.learning_rate),
      scientific(point.gradient_norm), span(point.step_seconds), compact(point.tokens_per_second), percent(point.bubble), point.skipped ? 'skipped' : '']);
    updateTable(part(this.root, 'curves-table'), 'Last steps', [{title: 'Step'}, {title: 'Loss', number: true}, {title: 'Learning rate', number: true},
      {title: 'Gradient norm', number: true}, {title: 'Step time', number: true}, {title: 'Tokens/s', number: true},
      {title: 'Bubble', number: true}, {title: 'Note'}], rows, 'No step yet.');
  }

  themeChanged() {
    for (const chart of this.charts) chart.recolour();
    this.draw();
  }

  close() {
    clearTimeout(this.timer);
    for (const chart of this.charts) chart.destroy();
  }
}
