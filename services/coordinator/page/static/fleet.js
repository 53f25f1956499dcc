// The stage servers and their leases.
import {h, part, setText, updateTable} from './dom.js';
import {bytes, duration, num} from './format.js';
import {placeOf} from './job_facts.js';

const COLUMNS = [
  {title: 'Server'}, {title: 'State'}, {title: 'Heartbeat', number: true}, {title: 'Job'}, {title: 'Stage', number: true},
  {title: 'Device'}, {title: 'Address'}, {title: 'Memory', number: true}, {title: 'Up', number: true}, {title: 'Version'},
  {title: 'Waits for'},
];
const LEASE_SECONDS = 1.5;

/** Seconds since the last renewal, by the coordinator's clock. */
export function heartbeatAge(store, info) {
  const last = num(info.last_heartbeat_unix_seconds);
  return last > 0 ? Math.max(0, store.now() - last) : NaN;
}

function stagePlace(store, name) {
  const jobs = store.job ? [store.job] : store.jobs || [];
  for (const job of jobs) {
    const index = (job.stages || []).findIndex((stage) => stage.name === name);
    if (index >= 0 && ['JOB_STATE_RUNNING', 'JOB_STATE_PENDING'].includes(job.state)) return String(placeOf(job.stages[index], index));
  }
  return '–';
}

export function updateFleet(root, store, stages) {
  const lost = stages.filter((info) => info.state === 'lost').length;
  setText(part(root, 'fleet-note'), stages.length === 0 ? '' :
    `${stages.length} registered, ${lost === 0 ? 'none lost' : `${lost} lost`}`);
  updateTable(part(root, 'fleet'), 'Stage servers', COLUMNS, stages.map((info) => {
    const stage = info.stage || {};
    const age = heartbeatAge(store, info);
    const late = info.state !== 'lost' && age > LEASE_SECONDS;
    const memory = info.telemetry?.memory;
    const used = memory ? Object.values(memory).reduce((sum, value) => sum + (num(value) || 0), 0) : NaN;
    return [
      {text: stage.name, field: 'stage-name', value: stage.name},
      {text: h('span', {class: 'badge', 'data-state': info.state}, info.state || 'unknown'), field: 'stage-state', value: info.state},
      {text: Number.isNaN(age) ? '–' : age < 60 ? `${age.toFixed(1)} s ago` : `${duration(age)} ago`, class: late ? 'warn' : ''},
      info.job_id ? h('a', {href: `#/jobs/${encodeURIComponent(info.job_id)}`}, info.job_id) : '–',
      stagePlace(store, stage.name),
      stage.device || '–',
      {text: stage.address || '–', class: 'mono'},
      bytes(used),
      duration(info.telemetry?.uptime_seconds),
      stage.version || '–',
      {text: info.waiting_for || '–', class: 'waits'},
    ];
  }), store.stages === null ? 'Waiting for the coordinator.' : 'No stage server is registered. Start one with: stagecoach-stage');
}
