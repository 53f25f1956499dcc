// Philox4x32-10 in vectors: the random bits of base/numbers/random.h, many blocks at a time.
#if defined(STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_PHILOX_INL_H_
#undef STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_PHILOX_INL_H_
#else
#define STAGECOACH_STAGE_BACKENDS_CPU_VECTOR_PHILOX_INL_H_
#endif

#include <cstdint>

#include "base/numbers/random.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace stagecoach::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using U64 = hn::ScalableTag<uint64_t>;
using U64Vec = hn::Vec<U64>;

// Low 32 bits of each lane, multiplied into 64.
HWY_INLINE U64Vec WideMul(U64Vec a, U64Vec b) {
#if HWY_TARGET == HWY_SCALAR
  const auto low = hn::Set(U64(), uint64_t{0xFFFFFFFF});
  return hn::Mul(hn::And(a, low), hn::And(b, low));
#else
  const hn::Repartition<uint32_t, U64> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#endif
}

// Words are kept in the low halves of 64-bit lanes; the high halves hold leftovers of the products
// that no later step reads.
struct PhiloxWords {
  U64Vec c0, c1, c2, c3;
};
HWY_INLINE PhiloxWords PhiloxRounds(PhiloxWords c, PhiloxKey key) {
  const U64 d;
  const auto m0 = hn::Set(d, uint64_t{0xD2511F53}), m1 = hn::Set(d, uint64_t{0xCD9E8D57});
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    const auto p0 = WideMul(m0, c.c0), p1 = WideMul(m1, c.c2);
    const auto k0 = hn::Set(d, uint64_t{key[0]}), k1 = hn::Set(d, uint64_t{key[1]});
    c = {hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c.c1), k0), p1,
         hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c.c3), k1), p0};
  }
  return c;
}

// Upper bound of the words that RandomWords writes before and after those asked for. The buffer
// holds count + kRandomSlack.
constexpr int64_t kRandomSlack = 4 + 4 * 8 + 16;

// Writes the words of elements [first, first + count) and returns the address of the first one.
HWY_INLINE const uint32_t* RandomWords(const RandomStream& stream, uint64_t first, int64_t count,
                                       uint32_t* buffer) {
  const U64 d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, uint64_t{0xFFFFFFFF});
  const PhiloxCounter fixed = stream.Block(0);
  const PhiloxKey key = SeedKey(stream.seed);
  const int64_t skipped = static_cast<int64_t>(first % 4);
  const int64_t blocks = (skipped + count + 3) / 4;
  for (int64_t b = 0; b < blocks; b += lanes) {
    const auto block = hn::And(hn::Iota(d, first / 4 + static_cast<uint64_t>(b)), low);
    const PhiloxWords c =
        PhiloxRounds({block, hn::Set(d, uint64_t{fixed[1]}), hn::Set(d, uint64_t{fixed[2]}),
                      hn::Set(d, uint64_t{fixed[3]})},
                     key);
    // Blocks leave in order: words (0, 1) and (2, 3) of a block in neighbouring 64-bit lanes.
    const auto w01 = hn::Or(hn::And(c.c0, low), hn::ShiftLeft<32>(c.c1));
    const auto w23 = hn::Or(hn::And(c.c2, low), hn::ShiftLeft<32>(c.c3));
    hn::StoreInterleaved2(w01, w23, d, reinterpret_cast<uint64_t*>(buffer + 4 * b));
  }
  return buffer + skipped;
}

// The mask of elements that dropout keeps, by the rule of DropoutThreshold. Reads a vector.
HWY_INLINE hn::Mask<hn::ScalableTag<float>> KeepMask(const uint32_t* words, uint32_t threshold) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto flip = hn::Set(du, 0x80000000u);  // unsigned order as signed order
  const auto word = hn::BitCast(di, hn::Xor(hn::LoadU(du, words), flip));
  const auto limit = hn::Set(di, static_cast<int32_t>(threshold ^ 0x80000000u));
  return hn::RebindMask(d, hn::Not(hn::Lt(word, limit)));
}

}  // namespace HWY_NAMESPACE
}  // namespace stagecoach::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
