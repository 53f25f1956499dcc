// Curves over the job's life, and over another job's if one is picked, drawn by Chart.js.
import {Comparison} from './compare.js';
import {CurveChart, lineSwatch} from './curve_chart.js';
import {fillSegmented, h, part, updateTable} from './dom.js';
import {compact, decimal, integer, measureText, measureValue, percent, scientific, span} from './format.js';
import {hasBubble, hasMeasured, throughputOf, throughputText, totalSteps} from './job_facts.js';
import {measureColumn} from './series.js';
import {downsample, quantile, smooth} from './sample.js';
import {settingsOf} from './settings.js';

const MOST_POINTS = 2000;
const TABLE_ROWS = 20;
const REDRAW_MS = 1000;
const RECENT = 200;

const CURVES = [
  {name: 'loss', title: 'Loss', format: (value) => decimal(value, 4), tick: scientific, evaluation: true},
  {name: 'learning_rate', title: 'Learning rate', format: scientific, raw: true},
  {name: 'gradient_norm', title: 'Gradient norm', format: scientific},
  {name: 'step_seconds', title: 'Step time', format: span, quantiles: true},
  {name: 'tokens_per_second', title: 'Throughput', format: compact, zero: true, rate: true},
  {name: 'bubble', title: 'Bubble', format: (value) => percent(value, 0), zero: true, pipeline: true},
];

/** How a curve's value is found in a point. */
function valueIn(curve, job) {
  return curve.rate ? throughputOf(job).of : (point) => point[curve.name];
}

/** What the two runs differ in: [what, of this one, of the other]. */
export function differences(job, other) {
  const facts = (one) => [['Steps', `${integer(one.step)} / ${integer(totalSteps(one))}`], ['Loss', decimal(one.loss, 4)],
    ['Eval loss', decimal(one.evaluation_loss, 4)], ['Throughput', throughputText(one)],
    ['Bubble', hasMeasured(one) && hasBubble(one) ? percent(one.bubble) : '–'],
    ...settingsOf(one).map(([, title, value, detail]) => [title, detail ? `${value}; ${detail}` : value])];
  const theirs = new Map(facts(other));
  return facts(job).filter(([title, value]) => theirs.get(title) !== value).map(([title, value]) => [title, value, theirs.get(title)]);
}

export class Curves {
  constructor(root, store, jobId) {
    this.root = root;
    this.store = store;
    this.jobId = jobId;
    this.axis = 'step';
    this.weight = 0.6;
    this.other = new Comparison(store, jobId, () => this.draw());
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
    controls.append(this.other.control, h('label', {class: 'check'}, 'Smoothing', slider), axis);
    this.charts = CURVES.map((curve) => new CurveChart(part(root, 'curves'), curve));
    this.measured = new Set();
    this.version = -1;
    this.drawnAt = 0;
  }

  update() {
    this.other.update();
    const series = this.store.series;
    if (series === this.series && series.version === this.version) return;
    const wait = this.drawnAt + REDRAW_MS - Date.now();
    if (wait > 0 && series === this.series && this.drawnSteps > 0) {
      if (!this.timer) this.timer = setTimeout(() => this.draw(), wait);
      return;
    }
    this.draw();
  }

  /** By time two runs are laid over each other from where each began to run; one alone has the clock's time. */
  placeOn(series) {
    if (this.axis === 'step') return (point) => point.step;
    return this.other.shown ? (point) => point.time - series.beganAt : (point) => point.time;
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    const series = this.store.series;
    this.series = series;
    this.version = series.version;
    this.drawnAt = Date.now();
    this.drawnSteps = series.steps.length;
    const x = this.placeOn(series);
    const marks = series.marks.map((mark) => ({x: x(mark), kind: mark.kind}));
    this.chartMeasures(series);
    for (const chart of this.charts) this.drawChart(chart, marks);
    this.table(series);
    this.compare();
  }

  /** What a network measures beside the loss is known from its first record on. */
  chartMeasures(series) {
    for (const name of series.measures) {
      if (this.measured.has(name)) continue;
      this.measured.add(name);
      const text = measureText(name);
      this.charts.push(new CurveChart(part(this.root, 'curves'), {
        name: measureColumn(name), title: text[0].toUpperCase() + text.slice(1), format: (value) => measureValue(name, value), evaluation: true}));
    }
  }

  /** The lines of one run: kinds names what each is drawn as; null leaves it out. */
  lines(curve, series, job, kinds, name) {
    if (curve.pipeline && !hasBubble(job)) return [];
    const x = this.placeOn(series);
    const valueOf = valueIn(curve, job);
    const placed = (list) => list.filter((point) => valueOf(point) !== undefined).map((point) => ({x: x(point), y: valueOf(point)}));
    const points = placed(series.steps);
    const title = (text) => (this.other.shown ? `${name} ${text}` : text);
    const lines = [];
    const smoothed = !curve.raw && this.weight > 0;
    if (smoothed && kinds.faint) lines.push({kind: kinds.faint, title: title('each step'), points: downsample(points, MOST_POINTS)});
    lines.push({kind: kinds.main, title: title(smoothed ? 'smoothed' : curve.rate ? `${throughputOf(job).what} per second` : curve.title.toLowerCase()),
                points: downsample(smoothed ? smooth(points, this.weight) : points, MOST_POINTS)});
    if (curve.evaluation) {
      lines.push({kind: kinds.second, title: title('evaluation'),
                  points: downsample(placed(series.evaluations), MOST_POINTS)});
    }
    const ideal = Number(job?.bubble_ideal);
    const [first, last] = [series.steps[0], series.steps[series.steps.length - 1]];
    if (curve.pipeline && kinds.level && last && ideal > 0) {
      lines.push({kind: kinds.level, title: 'ideal', points: [{x: x(first), y: ideal}, {x: x(last), y: ideal}]});
    }
    return lines;
  }

  drawChart(chart, marks) {
    const {curve} = chart;
    const {series, job} = this.store;
    const lines = this.lines(curve, series, job, {faint: 'faint', main: 'main', second: 'second', level: 'level'}, this.jobId);
    let note = this.note(curve, series, job);
    if (this.other.shown) {
      lines.push(...this.lines(curve, this.other.series, this.other.job, {main: 'other', second: 'otherSecond'}, this.other.id));
      note = `${this.newest(curve, series, job)} and ${this.newest(curve, this.other.series, this.other.job)}`;
    }
    chart.draw(lines, marks, note, this.axis === 'time' && this.other.shown ? 'elapsed' : this.axis);
  }

  newest(curve, series, job) {
    const last = series.steps[series.steps.length - 1];
    const value = last && valueIn(curve, job)(last);
    if (value === undefined || (curve.pipeline && !hasBubble(job))) return '–';
    return curve.format(value) + (curve.rate ? ` ${throughputOf(job).what}/s` : '');
  }

  note(curve, series, job) {
    if (curve.pipeline && !hasBubble(job)) return 'one stage: none';
    const newest = this.newest(curve, series, job);
    if (series.steps.length === 0) return newest;
    if (curve.quantiles) {
      const recent = series.steps.slice(-RECENT).map((point) => point[curve.name]);
      return `p50 ${curve.format(quantile(recent, 0.5))} · p95 ${curve.format(quantile(recent, 0.95))}`;
    }
    return curve.pipeline && job ? `${newest} · ideal ${curve.format(job.bubble_ideal)}` : newest;
  }

  table(series) {
    const bubble = hasBubble(this.store.job);
    const rate = throughputOf(this.store.job);
    const rows = series.steps.slice(-TABLE_ROWS).reverse().map((point) => [integer(point.step), decimal(point.loss, 4), scientific(point.learning_rate),
      scientific(point.gradient_norm), span(point.step_seconds), compact(rate.of(point)), bubble ? percent(point.bubble) : '–',
      point.skipped ? 'skipped' : '']);
    updateTable(part(this.root, 'curves-table'), 'Last steps', [{title: 'Step'}, {title: 'Loss', number: true}, {title: 'Learning rate', number: true},
      {title: 'Gradient norm', number: true}, {title: 'Step time', number: true}, {title: `${rate.what[0].toUpperCase()}${rate.what.slice(1)}/s`, number: true},
      {title: 'Bubble', number: true}, {title: 'Note'}], rows, 'No step yet.');
  }

  /** Which line is whose, and what the two jobs differ in. */
  compare() {
    const host = part(this.root, 'comparison');
    host.hidden = !this.other.shown;
    if (host.hidden || !this.store.job) return;
    const legend = part(this.root, 'comparison-legend');
    if (legend.dataset.other !== this.other.id) {
      legend.dataset.other = this.other.id;
      legend.replaceChildren(h('li', {}, lineSwatch('main'), this.jobId), h('li', {}, lineSwatch('other'), this.other.id));
    }
    updateTable(part(this.root, 'comparison-table'), 'What the two jobs differ in', [{title: 'Differs in'}, {title: this.jobId}, {title: this.other.id}],
                differences(this.store.job, this.other.job), 'Nothing that is shown here: the same settings and the same numbers.');
  }

  /** By the address: #/jobs/ID/with/OTHER; '' without. */
  compareWith(id) {
    if (id !== this.other.id) this.other.take(id);
  }

  themeChanged() {
    for (const chart of this.charts) chart.recolour();
    this.draw();
  }

  close() {
    clearTimeout(this.timer);
    this.other.close();
    for (const chart of this.charts) chart.destroy();
  }
}
