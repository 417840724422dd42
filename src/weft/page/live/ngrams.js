/* Hashes of n-grams, and the bag of a classifier, as weft.engine.ngrams has them. */

const PRIME = 2 ** 31 - 1;
const MULTIPLIER = 742938285;

// (hash * MULTIPLIER + id) mod PRIME, in halves, so that no product is above 2^53.
function hashed(hash, id) {
  const high = Math.floor(hash / 65536);
  const low = hash % 65536;
  return (((high * MULTIPLIER) % PRIME) * 65536 + low * MULTIPLIER + id) % PRIME;
}

// The bucket of the n ids that end at a place, the last one without it; null where they are not so many.
function hashOfLast(ids, n, buckets, end = ids.length) {
  if (end < n) return null;
  let hash = n;
  for (let i = end - n; i < end; i++) {
    if (ids[i] === PAD_ID) return null;
    hash = hashed(hash, ids[i]);
  }
  return hash % buckets;
}

// Which rows of a bag’s tables a text has: each with the place where its n-gram begins, n, its vector and its weight.
function* bagRows(bag, ids) {
  for (const [place, id] of ids.entries()) {
    if (id === PAD_ID) continue;
    yield { place, n: 1, vector: bag.tokens.at(id), weight: bag.tokenWeights ? bag.tokenWeights[id] : 1 };
  }
  for (let n = 2; n <= (bag.hashed ? bag.longest : 1); n++) {
    for (let end = n; end <= ids.length; end++) {
      const row = hashOfLast(ids, n, bag.hashed.length, end);
      if (row === null) continue;
      yield { place: end - n, n, vector: bag.hashed.at(row), weight: bag.hashedWeights ? bag.hashedWeights[row] : 1 };
    }
  }
}

// The weighted mean of the vectors; zeros for a text without any.
function bagMean(bag, ids) {
  const mean = new Float64Array(bag.tokens.width);
  let total = 0;
  for (const { vector, weight } of bagRows(bag, ids)) {
    total += weight;
    for (let i = 0; i < mean.length; i++) mean[i] += weight * vector[i];
  }
  return total > 0 ? mean.map((value) => value / total) : mean;
}
