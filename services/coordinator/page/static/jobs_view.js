// All jobs and all stage servers. The stream tells when a job changes its state, not each step, so progress is asked for.
import {listJobs} from './api.js';
import {h, part, setText, updateTable} from './dom.js';
import {updateFleet} from './fleet.js';
import {dateTime, decimal, duration, integer, num, percent} from './format.js';
import {hasBubble, hasMeasured, isHeld, stateOf, throughputText, totalSteps} from './job_facts.js';

const COLUMNS = [
  {title: 'Job'}, {title: 'State'}, {title: 'Progress'}, {title: 'Steps', number: true}, {title: 'Loss', number: true},
  {title: 'Eval loss', number: true}, {title: 'Throughput', number: true}, {title: 'Bubble', number: true}, {title: 'Submitted'},
  {title: 'Duration', number: true},
];

const POLL_MS = 2000;

export class JobsView {
  constructor(main, store) {
    this.store = store;
    main.replaceChildren(document.getElementById('jobs-view').content.cloneNode(true));
    this.root = main;
    this.timer = setInterval(() => this.poll(), POLL_MS);
  }

  async poll() {
    const active = (this.store.jobs || []).some((job) => !isHeld(job) && ['JOB_STATE_PENDING', 'JOB_STATE_RUNNING'].includes(job.state));
    if (!active || document.hidden || this.store.connection !== 'live') return;
    try {
      this.store.setJobs(await listJobs());
    } catch (error) {
      // The connection's state, shown at the top, tells.
    }
  }

  close() {
    clearInterval(this.timer);
  }

  update() {
    const jobs = this.store.jobs;
    updateFleet(this.root, this.store, this.store.stages || []);
    if (jobs === null) return;
    const running = jobs.filter((job) => job.state === 'JOB_STATE_RUNNING').length;
    setText(part(this.root, 'jobs-note'), jobs.length === 0 ? '' : `${jobs.length} in all, ${running} running`);
    updateTable(part(this.root, 'jobs'), 'Jobs, newest first', COLUMNS, jobs.map((job) => this.row(job)),
                'No job yet. Submit one with: stagecoach submit job.yaml');
  }

  row(job) {
    const steps = totalSteps(job);
    const end = job.finished_unix_seconds ?? this.store.now();
    return [
      {text: h('a', {href: `#/jobs/${encodeURIComponent(job.id)}`}, job.id), field: 'id', value: job.id},
      {text: h('span', {class: 'badge', 'data-state': stateOf(job)}, stateOf(job)), field: 'state'},
      {text: h('progress', {max: steps || 1, value: num(job.step) || 0, 'aria-label': `Steps of ${job.id}`})},
      {text: `${integer(job.step)} / ${integer(steps)}`, field: 'step', value: job.step},
      decimal(job.loss, 4),
      decimal(job.evaluation_loss, 4),
      throughputText(job),
      hasMeasured(job) && hasBubble(job) ? percent(job.bubble) : '–',
      dateTime(job.submitted_unix_seconds),
      isHeld(job) ? '–' : duration(num(end) - num(job.submitted_unix_seconds)),
    ];
  }
}
