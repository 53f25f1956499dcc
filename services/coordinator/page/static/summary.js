// A job's headline numbers: state, progress, time left, loss, throughput, bubble, checkpoint, alerts.
import {alertsOf} from './alerts.js';
import {h, part, s, setAttribute, setText} from './dom.js';
import {clock, dateTime, decimal, duration, integer, isOfAClass, measureText, measureValue, num, percent, span, stateName} from './format.js';
import {hasBubble, hasMeasured, isHeld, isWriting, lostStages, paddingText, pipelineStages, stateOf, rateText, throughputText, totalSteps} from './job_facts.js';
import {modelText, precisionText, scheduleText} from './settings.js';

const TILES = [['eta', 'Time left'], ['loss', 'Loss'], ['evaluation_loss', 'Eval loss'], ['tokens_per_second', 'Throughput'],
               ['step_seconds', 'Step time'], ['bubble', 'Bubble'], ['checkpoint', 'Checkpoint']];

function changeText(change) {
  const size = Math.abs(change).toFixed(4);
  return Number(size) === 0 ? 'no change' : `${change < 0 ? '−' : '+'}${size}`;
}

// While a job is not at its steps there is no time left to tell.
const STANDS_STILL = {
  submitted: 'waits for stages', planned: 'is being placed', loading: 'loads its weights', recovering: 'while it recovers',
  held: 'interrupted', finishing: 'writes the weights',
};

function stagesText(job) {
  const stages = pipelineStages(job);
  const asked = num(job.spec?.pipeline?.stages);
  if (!(stages > 0)) return 'K = as many stages as are free';
  const fewer = asked > 0 && asked !== stages ? ` of the ${asked} asked for` : '';
  const lost = lostStages(job);
  return `K = ${stages} ${stages === 1 ? 'stage' : 'stages'}${fewer}${lost > 0 ? `, ${lost} lost` : ''}`;
}

export class Summary {
  constructor(root, store, jobId) {
    this.root = root;
    this.store = store;
    this.jobId = jobId;
    this.values = {};
    this.hints = {};
    for (const [name, title] of TILES) {
      this.values[name] = h('span', {class: 'value', 'data-field': name}, '–');
      this.hints[name] = h('span', {class: 'hint', 'data-hint': name});
      const extra = name === 'bubble' ? this.bubbleBar() : null;
      part(root, 'tiles').append(h('div', {class: 'tile'}, h('dt', {}, title), h('dd', {}, this.values[name], this.hints[name], extra)));
    }
    setText(this.field('name'), jobId);
  }

  field(name) {
    return this.root.querySelector(`[data-field="${name}"]`);
  }

  bubbleBar() {
    this.bubbleFill = s('rect', {class: 'bullet-value', height: '100%', width: 0, fill: 'url(#pattern-bubble)'});
    this.bubbleMark = s('rect', {class: 'bullet-mark', height: '100%', width: 2, x: 0});
    this.bubbleSvg = s('svg', {class: 'bullet', 'aria-hidden': 'true'}, s('rect', {class: 'bullet-ground', width: '100%', height: '100%'}),
                       this.bubbleFill, this.bubbleMark);
    return this.bubbleSvg;
  }

  set(name, text, raw, hint) {
    setText(this.values[name], text);
    setAttribute(this.values[name], 'data-value', raw ?? null);
    setText(this.hints[name], hint);
  }

  update() {
    const {job, problem} = this.store;
    if (!job) {
      setText(part(this.root, 'subtitle'), problem ? `${problem.code}: ${problem.message}` : 'Loading…');
      setText(this.field('state'), problem ? 'unknown' : '');
      return;
    }
    this.updateHead(job);
    this.updateProgress(job);
    this.updateTiles(job);
    this.updateAlerts(job);
  }

  updateHead(job) {
    const state = stateOf(job);
    const detail = job.detail && job.detail !== state.toLowerCase() ? ` · ${job.detail}` : '';
    setText(this.field('state'), state + (this.store.ended ? '' : detail));
    setAttribute(this.field('state'), 'data-state', job.detail === 'recovering' && !this.store.ended ? 'recovering' : state);
    setAttribute(this.field('state'), 'data-value', job.state);
    const pipeline = `${stagesText(job)}, M = ${job.spec?.training?.micro_batches ?? '?'} micro-batches, ${scheduleText(job.spec)}`;
    const end = job.finished_unix_seconds ?? this.store.now();
    const length = `, ${job.finished_unix_seconds ? 'took' : 'for'} ${duration(num(end) - num(job.submitted_unix_seconds))}`;
    const times = `submitted ${dateTime(job.submitted_unix_seconds)}${isHeld(job) ? '' : length}`;
    setText(part(this.root, 'subtitle'), [modelText(job.spec), precisionText(job.spec), pipeline, times].join('  ·  '));
  }

  updateProgress(job) {
    const steps = totalSteps(job);
    const done = num(job.step);
    const progress = part(this.root, 'progress');
    progress.max = steps > 0 ? steps : 1;
    progress.value = Number.isFinite(done) ? done : 0;
    setText(this.field('step'), integer(done));
    setAttribute(this.field('step'), 'data-value', job.step);
    const epochs = num(job.spec?.training?.epochs);
    setText(part(this.root, 'steps'), steps > 0 || !(epochs > 0) ? ` / ${integer(steps)} steps · ${percent(steps > 0 ? done / steps : 0)}`
      : ` steps of ${epochs === 1 ? 'one epoch' : `${epochs} epochs`}`);
  }

  updateTiles(job) {
    const store = this.store;
    this.updateEta(job);
    const steps = store.series.steps;
    const back = Math.min(100, steps.length - 1);
    const change = back >= 10 ? num(job.loss) - steps[steps.length - 1 - back].loss : NaN;
    this.set('loss', decimal(job.loss, 4), job.loss,
             Number.isFinite(change) ? `${changeText(change)} in ${back} steps` : '');
    const evaluations = store.series.evaluations;
    const last = evaluations[evaluations.length - 1];
    const measures = (job.evaluation_measures || []).filter(({name}) => !isOfAClass(name)).map(({name, value}) => ` · ${measureText(name)} ${measureValue(name, value)}`).join('');
    this.set('evaluation_loss', decimal(job.evaluation_loss, 4), job.evaluation_loss, last ? `at step ${integer(last.step)}${measures}` : '');
    this.updateMeasured(job);
    const checkpoint = store.series.lastCheckpoint;
    const saved = job.last_checkpoint_step;
    this.set('checkpoint', saved === undefined ? 'none' : `step ${integer(saved)}`, saved,
             !checkpoint ? '' : store.ended ? clock(checkpoint.time) : `${duration(Math.max(0, store.now() - checkpoint.time))} ago`);
  }

  /** What the last step measured: nothing before the first one, and not of the new placement right after a recovery. */
  updateMeasured(job) {
    const measured = hasMeasured(job);
    const old = measured && !this.store.ended && num(job.recoveries) > 0 && !this.store.series.stepsOfPlacement().length;
    const when = !measured ? 'no step yet' : old ? 'before the recovery' : 'last step';
    const set = (name, text, hint) => this.set(name, measured ? text : '–', measured ? job[name] : null, hint);
    set('tokens_per_second', throughputText(job), [when, paddingText(job)].filter(Boolean).join(' · '));
    const forecast = isWriting(job) ? 0 : num(job.forecast_step_seconds);
    set('step_seconds', span(job.step_seconds), old ? when : forecast > 0 ? `planned ${span(forecast)}${rateText(job)}` : '');
    const bubble = hasBubble(job);
    setAttribute(this.bubbleSvg, 'hidden', bubble ? null : '');
    if (!bubble) {
      this.set('bubble', '–', null, isWriting(job) ? '' : 'one stage: none');
      return;
    }
    const ideal = num(job.bubble_ideal);
    set('bubble', percent(job.bubble), old ? when : ideal > 0 ? `ideal ${percent(ideal)}` : '');
    setAttribute(this.bubbleFill, 'width', `${measured ? Math.min(100, Math.max(0, num(job.bubble) * 100 || 0)) : 0}%`);
    setAttribute(this.bubbleMark, 'x', `${Math.min(99, Math.max(0, ideal * 100 || 0))}%`);
  }

  updateEta(job) {
    if (this.store.ended) {
      this.set('eta', stateName(job.state) === 'SUCCEEDED' ? 'done' : 'ended', null, clock(job.finished_unix_seconds, false));
      return;
    }
    if (job.detail in STANDS_STILL) {
      this.set('eta', '–', null, STANDS_STILL[job.detail]);
      return;
    }
    const each = isWriting(job) ? 0 : this.secondsPerStep(job);
    const left = (totalSteps(job) - num(job.step)) * each;
    if (!(left >= 0) || each === 0) {
      this.set('eta', '–', null, '');
      return;
    }
    this.set('eta', duration(left), String(left), `ends ${clock(Date.now() / 1000 + left, left < 3600)}`);
  }

  /** Of the placement at hand: with fewer stages, or other ones, a step takes another time. */
  secondsPerStep(job) {
    const measured = this.store.series.secondsPerStep();
    if (Number.isFinite(measured)) return measured;
    if (this.store.series.stepsOfPlacement().length > 0) return num(job.step_seconds);
    return num(job.forecast_step_seconds) || num(job.step_seconds);
  }

  updateAlerts(job) {
    const alerts = alertsOf(this.store, job);
    const host = part(this.root, 'alerts');
    const key = JSON.stringify(alerts);
    if (key === this.alertKey) return;
    this.alertKey = key;
    host.hidden = alerts.length === 0;
    host.replaceChildren(...alerts.map((alert) => h('li', {'data-level': alert.level},
      h('span', {class: 'alert-mark', 'aria-hidden': 'true'}, alert.level === 'info' ? 'i' : '!'), alert.text)));
  }
}
