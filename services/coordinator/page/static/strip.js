// One bar per stage: which share of its time went where. Shares are tenths of a percent that add up to 100.
import {fillSegmented, h, part, s, setText, updateTable} from './dom.js';
import {duration, exactShares, zero} from './format.js';
import {layersText, placeOf, whyNoStages} from './job_facts.js';
import {PHASES, phaseFill, phaseOf, swatch} from './phases.js';

// Less than some steps would show where in a step the page came in, not where time goes.
const LEAST_STEPS = 3;
const LEAST_SECONDS = 3;
const LABEL_SHARE = 55;  // tenths of a percent that a number in a piece needs

export class Strip {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.window = 'minute';
    fillSegmented(part(root, 'strip-window'), 'strip-window', [['minute', 'Last minute'], ['step', 'Last step']], 'minute',
                  (value) => {
                    this.window = value;
                    this.update();
                  });
    part(root, 'strip-legend').append(...PHASES.map((phase) =>
      h('li', {}, swatch(phaseFill(phase.name)), `${phase.title}`)));
  }

  /** Seconds by phase of one stage of the job. */
  phasesOf(stage) {
    if (this.window === 'minute' && !this.store.ended) {
      const recent = this.store.telemetry.phases(stage.name);
      const least = Math.max(LEAST_SECONDS, LEAST_STEPS * zero(this.store.job?.step_seconds));
      if (recent && recent.seconds >= least) return {...recent, recent: true};
    }
    const phases = stage.phases?.seconds || {};
    return {phases, seconds: Object.values(phases).reduce((sum, value) => sum + zero(value), 0), recent: false};
  }

  update() {
    const stages = this.store.job?.stages || [];
    const all = stages.map((stage, index) => {
      const {phases, seconds, recent} = this.phasesOf(stage);
      const names = PHASES.map((phase) => phase.name).filter((name) => zero(phases[name]) > 0);
      for (const name of Object.keys(phases)) if (!names.includes(name) && zero(phases[name]) > 0) names.push(name);
      const shares = exactShares(names.map((name) => zero(phases[name])));
      return {index: placeOf(stage, index), stage, names, shares, seconds, recent, phases};
    });
    // After the end nobody tells, unless the job's last report is at hand.
    const rows = this.store.ended ? all.filter((row) => row.seconds > 0) : all;
    // Of an ended job the last minute is over.
    part(this.root, 'strip-window').hidden = this.store.ended;
    const recent = rows.filter((row) => row.recent);
    setText(part(this.root, 'strip-note'), recent.length > 0 ? `last ${duration(Math.max(...recent.map((row) => row.seconds)))}`
      : rows.length > 0 ? 'last step' : '');
    this.draw(rows);
    this.table(rows);
  }

  draw(rows) {
    const key = JSON.stringify([whyNoStages(this.store.job), rows.map((row) => [row.index, row.stage.name, layersText(row.stage), row.names, row.shares])]);
    if (key === this.key) return;
    this.key = key;
    const host = part(this.root, 'strip');
    if (rows.length === 0) {
      host.replaceChildren(h('p', {class: 'note'}, whyNoStages(this.store.job)));
      return;
    }
    host.replaceChildren(h('ul', {class: 'strip'}, rows.map((row) => this.bar(row))));
  }

  bar(row) {
    const {stage} = row;
    const bar = s('svg', {class: 'strip-bar', role: 'img', 'aria-label': this.describe(row)});
    let x = 0;
    row.names.forEach((name, index) => {
      const share = row.shares[index];
      bar.append(s('g', {}, s('title', {}, `${phaseOf(name).title} ${(share / 10).toFixed(1)} %`),
        s('rect', {x: `${x / 10}%`, width: `${share / 10}%`, height: '100%', 'data-phase': name, 'data-share': share, ...phaseFill(name)})));
      if (share >= LABEL_SHARE) {
        bar.append(s('text', {class: `on-phase on-${name}`, x: `${(x + share / 2) / 10}%`, y: '50%', dy: '0.35em'},
                     `${phaseOf(name).letter} ${Math.round(share / 10)}`));
      }
      x += share;
    });
    return h('li', {}, h('span', {class: 'strip-label'}, h('strong', {}, `Stage ${row.index}`),
      h('span', {class: 'note'}, [stage.name, layersText(stage)].filter(Boolean).join(' · '))), bar);
  }

  describe(row) {
    const parts = row.names.map((name, index) => `${phaseOf(name).title} ${(row.shares[index] / 10).toFixed(1)} %`);
    return `Stage ${row.index}: ${parts.join(', ') || 'nothing yet'}`;
  }

  table(rows) {
    const columns = [{title: 'Stage'}, ...PHASES.map((phase) => ({title: phase.title, number: true})), {title: 'Sum', number: true}];
    updateTable(part(this.root, 'strip-table'), 'Share of time by phase', columns, rows.map((row) => [
      `Stage ${row.index}`,
      ...PHASES.map((phase) => {
        const index = row.names.indexOf(phase.name);
        return `${((index < 0 ? 0 : row.shares[index]) / 10).toFixed(1)} %`;
      }),
      `${(row.shares.reduce((sum, share) => sum + share, 0) / 10).toFixed(1)} %`,
    ]), whyNoStages(this.store.job));
  }
}
