// What an operator should know about a job right now, worst first.
import {heartbeatAge} from './fleet.js';
import {clock, decimal, duration, integer, num, percent} from './format.js';
import {hasBubble} from './job_facts.js';

const BUBBLE_MARGIN = 0.15;   // as the alert rule BubbleHigh
const BUBBLE_WINDOW = 20;     // steps, so that one slow step is no alert
const LATE_SECONDS = 1.5;     // the lease
const STALL_SECONDS = 60;
const REPLACED_SECONDS = 300;

function stageAlerts(store, job, alerts) {
  for (const stage of job.stages || []) {
    const info = store.stageInfo(stage.name);
    if (!store.stages || store.ended) continue;
    if (!info || info.state === 'lost') {
      alerts.push({level: 'danger', text: `Stage server ${stage.name} is lost`});
    } else if (heartbeatAge(store, info) > LATE_SECONDS + 0.5) {
      alerts.push({level: 'warn', text: `Stage server ${stage.name}: no heartbeat for ${heartbeatAge(store, info).toFixed(1)} s`});
    }
    const replaced = store.replaced.get(stage.name);
    if (replaced !== undefined && Date.now() / 1000 - replaced < REPLACED_SECONDS) {
      alerts.push({level: 'warn', text: `Stage server ${stage.name} was lost; a new process took its place at ${clock(replaced)}`});
    }
  }
}

function stalled(store, job) {
  const steps = store.series.steps;
  if (job.state !== 'JOB_STATE_RUNNING' || steps.length === 0) return null;
  const last = steps[steps.length - 1];
  const silence = store.now() - last.time;
  return silence > Math.max(STALL_SECONDS, 10 * last.step_seconds) ? silence : null;
}

function bubbleHigh(store, job) {
  const steps = store.series.stepsOfPlacement().slice(-BUBBLE_WINDOW);
  if (store.ended || !hasBubble(job) || steps.length < BUBBLE_WINDOW) return null;
  const mean = steps.reduce((sum, step) => sum + step.bubble, 0) / steps.length;
  return mean > num(job.bubble_ideal) + BUBBLE_MARGIN ? mean : null;
}

/** [{level: danger | warn | info, text}, ...]. */
export function alertsOf(store, job) {
  const alerts = [];
  const series = store.series;
  if (store.connection === 'lost') {
    alerts.push({level: 'danger', text: 'The coordinator does not answer. A run of stagecoach local that is over is shown again by ' +
      'stagecoach ui FOLDER, FOLDER being its run folder or the one above; otherwise start the coordinator again'});
  }
  if (job.state === 'JOB_STATE_FAILED') alerts.push({level: 'danger', text: `Failed: ${job.message || 'no cause given'}`});
  if (!store.ended && job.detail === 'recovering') {
    alerts.push({level: 'danger', text: `Recovering${job.message ? `: ${job.message}` : ''}`});
  } else if (!store.ended && job.message) {
    alerts.push({level: job.detail === 'loading' ? 'info' : 'warn', text: job.message});
  }
  if (store.unreadable !== '') alerts.push({level: 'danger', text: store.unreadable});
  stageAlerts(store, job, alerts);
  if (job.loss !== undefined && !Number.isFinite(num(job.loss))) {
    alerts.push({level: 'danger', text: `Loss is ${decimal(job.loss)}`});
  }
  const silence = stalled(store, job);
  if (silence !== null) alerts.push({level: 'danger', text: `No step for ${duration(silence)}`});
  if (series.checkpointError !== '') alerts.push({level: 'danger', text: `Checkpoint failed: ${series.checkpointError}`});
  const bubble = bubbleHigh(store, job);
  if (bubble !== null) {
    alerts.push({level: 'warn', text: `Bubble ${percent(bubble)} over the last ${BUBBLE_WINDOW} steps, ideal ${percent(job.bubble_ideal)}`});
  }
  if (num(job.skipped_steps) > 0) {
    alerts.push({level: 'warn', text: `${integer(job.skipped_steps)} ${num(job.skipped_steps) === 1 ? 'step' : 'steps'} skipped: a number was not finite`});
  }
  if (num(job.recoveries) > 0) {
    const last = series.lastRecovery ? `, the last at ${clock(series.lastRecovery.time)}: ${series.lastRecovery.message}` : '';
    alerts.push({level: 'info', text: `${integer(job.recoveries)} ${num(job.recoveries) === 1 ? 'recovery' : 'recoveries'}${last}`});
  }
  return alerts;
}
