// Fewer points and smoother lines.

/**
 * At most about `most` of the points: each bucket keeps its lowest and its highest, so spikes stay. Points
 * that are not numbers are left out.
 */
export function downsample(points, most) {
  const finite = points.filter((point) => Number.isFinite(point.y));
  if (finite.length <= most) return finite;
  const buckets = Math.floor(most / 2);
  const result = [finite[0]];
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    const from = Math.floor(bucket * finite.length / buckets);
    const to = Math.floor((bucket + 1) * finite.length / buckets);
    let [low, high] = [from, from];
    for (let index = from; index < to; index += 1) {
      if (finite[index].y < finite[low].y) low = index;
      if (finite[index].y > finite[high].y) high = index;
    }
    for (const index of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) {
      if (index > 0) result.push(finite[index]);
    }
  }
  const last = finite[finite.length - 1];
  if (result[result.length - 1] !== last) result.push(last);
  return result;
}

/** Exponential mean with its start corrected, as in TensorBoard; weight 0 gives the points themselves. */
export function smooth(points, weight) {
  if (weight <= 0) return points;
  let [sum, seen] = [0, 0];
  return points.map((point) => {
    if (!Number.isFinite(point.y)) return point;
    seen += 1;
    sum = sum * weight + point.y * (1 - weight);
    return {x: point.x, y: sum / (1 - weight ** seen)};
  });
}

/** The value below which a share of the values lies. */
export function quantile(values, share) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  return sorted.length === 0 ? NaN : sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}
