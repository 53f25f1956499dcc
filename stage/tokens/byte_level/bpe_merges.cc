#include "stage/tokens/byte_level/bpe_merges.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

BpeMerges::BpeMerges(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeRules rules)
    : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)) {
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    merges_[PairKey(merge.left, merge.right)] = {static_cast<uint32_t>(rank), merge.joined};
  }
  for (size_t c = 0; c < characters_.size(); ++c) {
    std::string text;
    if (c < 0x80) {
      text = static_cast<char>(c);
    } else {
      text = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    }
    characters_[c] = Find(text);
  }
  for (size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = Find(absl::StrFormat("<0x%02X>", byte));
  }
  if (rules_.unknown) unknown_ = Find(*rules_.unknown);
}

int32_t BpeMerges::Find(std::string_view piece) const {
  const auto found = vocabulary_.find(piece);
  return found == vocabulary_.end() ? -1 : found->second;
}

const BpeMerges::Joined* BpeMerges::FindMerge(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

int32_t BpeMerges::FindCharacter(std::string_view character) const {
  if (character.size() > 2) return Find(character);
  const auto first = static_cast<uint8_t>(character[0]);
  const size_t value = character.size() == 1
                           ? first
                           : size_t{first & 31u} << 6 | (static_cast<uint8_t>(character[1]) & 63);
  return value < characters_.size() ? characters_[value] : Find(character);
}

absl::Status BpeMerges::Tokenize(std::string_view word, Work* work,
                                 std::vector<int32_t>* ids) const {
  if (work->cache_.Append(word, ids)) return absl::OkStatus();
  const size_t before = ids->size();
  RETURN_IF_ERROR(MakeIds(word, work, ids));
  work->cache_.Keep(word, std::span(*ids).subspan(before));
  return absl::OkStatus();
}

absl::Status BpeMerges::MakeIds(std::string_view word, Work* work,
                                std::vector<int32_t>* ids) const {
  if (rules_.ignore_merges) {
    if (const int32_t id = Find(word); id >= 0) {
      ids->push_back(id);
      return absl::OkStatus();
    }
  }
  RETURN_IF_ERROR(Begin(word, work));
  Join(work);
  for (const Work::Symbol& symbol : work->symbols_) {
    if (!symbol.gone) ids->push_back(symbol.id);
  }
  return absl::OkStatus();
}

// The symbols of single characters.
absl::Status BpeMerges::Begin(std::string_view word, Work* work) const {
  std::vector<Work::Symbol>& symbols = work->symbols_;
  symbols.clear();
  const auto add = [&symbols](int32_t id) {
    const auto place = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, place - 1, place + 1});
  };
  bool unknown = false;  // one waits to be added
  const auto size = static_cast<int32_t>(word.size());
  for (int32_t i = 0; i < size;) {
    const int32_t begin = i;
    U8_FWD_1(word.data(), i, size);
    const auto from = static_cast<size_t>(begin);
    const std::string_view character = word.substr(from, static_cast<size_t>(i) - from);
    if (const int32_t id = FindCharacter(character); id >= 0) {
      if (std::exchange(unknown, false)) add(unknown_);
      add(id);
      continue;
    }
    const auto is_piece = [this](char byte) { return bytes_[static_cast<uint8_t>(byte)] >= 0; };
    if (rules_.byte_fallback && std::ranges::all_of(character, is_piece)) {
      // An unknown piece before them is added behind them, as the library does.
      for (const char byte : character) add(bytes_[static_cast<uint8_t>(byte)]);
      continue;
    }
    if (!rules_.unknown) continue;
    if (unknown_ < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no piece for a character, and model.unk_token, \"", ShownName(*rules_.unknown),
          "\", is not in model.vocab; give a tokenizer that has the 256 bytes"));
    }
    if (unknown && !rules_.fuse_unknown) add(unknown_);
    unknown = true;
  }
  if (unknown) add(unknown_);
  if (!symbols.empty()) symbols.back().next = -1;
  return absl::OkStatus();
}

// The first in the list is on top, the leftmost of equal ones.
constexpr auto kLater = [](const auto& one, const auto& other) {
  return one.rank != other.rank ? one.rank > other.rank : one.left > other.left;
};

void BpeMerges::Propose(Work* work, int32_t left) const {
  if (left < 0) return;
  const Work::Symbol& symbol = work->symbols_[static_cast<size_t>(left)];
  if (symbol.next < 0) return;
  const int32_t right_id = work->symbols_[static_cast<size_t>(symbol.next)].id;
  const Joined* const joined = FindMerge(symbol.id, right_id);
  if (joined == nullptr) return;
  work->pairs_.push_back({joined->rank, left, symbol.id, right_id, joined->id});
}

void BpeMerges::Join(Work* work) const {
  std::vector<Work::Symbol>& symbols = work->symbols_;
  std::vector<Work::Pair>& pairs = work->pairs_;
  pairs.clear();
  for (int32_t i = 0; i + 1 < std::ssize(symbols); ++i) Propose(work, i);
  std::ranges::make_heap(pairs, kLater);
  while (!pairs.empty()) {
    const Work::Pair pair = pairs.front();
    std::ranges::pop_heap(pairs, kLater);
    pairs.pop_back();
    Work::Symbol& left = symbols[static_cast<size_t>(pair.left)];
    if (left.gone || left.next < 0) continue;
    Work::Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (left.id != pair.left_id || right.id != pair.right_id) {
      // A part of it was joined with another one meanwhile. As the library, another pair that makes
      // the same piece is joined all the same.
      const Joined* const joined = FindMerge(left.id, right.id);
      if (joined == nullptr || joined->id != pair.joined) continue;
    }
    left.id = pair.joined;
    right.gone = true;
    left.next = right.next;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].before = pair.left;
    for (const int32_t place : {left.before, pair.left}) {
      const size_t before = pairs.size();
      Propose(work, place);
      if (pairs.size() > before) std::ranges::push_heap(pairs, kLater);
    }
  }
}

}  // namespace stagecoach
