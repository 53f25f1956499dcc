#include "stage/tokens/sentence_piece/model_file.h"

#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "stage/tokens/sentence_piece/wire_reader.h"

namespace stagecoach {
namespace {

using Kind = WireReader::Field::Kind;

// What the trainer wrote down of itself; names of pieces that have a meaning.
struct TrainerPart {
  uint64_t model_type = 1;
  bool byte_fallback = false;
  bool space_is_suffix = false;
  std::string unknown_text = " \u2047 ";
  std::string begin = "<s>", end = "</s>", pad = "<pad>";
};

absl::Status ReadTrainer(std::string_view bytes, TrainerPart* trainer) {
  for (WireReader reader(bytes); !reader.done();) {
    ASSIGN_OR_RETURN(const WireReader::Field field, reader.Next());
    if (field.Is(3, Kind::kVarint)) trainer->model_type = field.value;
    if (field.Is(24, Kind::kVarint)) trainer->space_is_suffix = field.value != 0;
    if (field.Is(35, Kind::kVarint)) trainer->byte_fallback = field.value != 0;
    if (field.Is(44, Kind::kBytes)) trainer->unknown_text = field.bytes;
    if (field.Is(46, Kind::kBytes)) trainer->begin = field.bytes;
    if (field.Is(47, Kind::kBytes)) trainer->end = field.bytes;
    if (field.Is(48, Kind::kBytes)) trainer->pad = field.bytes;
  }
  return absl::OkStatus();
}

absl::Status ReadRules(std::string_view bytes, NormalizerRules* rules) {
  for (WireReader reader(bytes); !reader.done();) {
    ASSIGN_OR_RETURN(const WireReader::Field field, reader.Next());
    if (field.Is(1, Kind::kBytes)) rules->name = field.bytes;
    if (field.Is(2, Kind::kBytes)) rules->characters = field.bytes;
    if (field.Is(3, Kind::kVarint)) rules->add_dummy_prefix = field.value != 0;
    if (field.Is(4, Kind::kVarint)) rules->remove_extra_spaces = field.value != 0;
    if (field.Is(5, Kind::kVarint)) rules->escape_spaces = field.value != 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<Piece> ReadPiece(std::string_view bytes) {
  Piece piece;
  for (WireReader reader(bytes); !reader.done();) {
    ASSIGN_OR_RETURN(const WireReader::Field field, reader.Next());
    if (field.Is(1, Kind::kBytes)) piece.text = field.bytes;
    if (field.Is(2, Kind::kFixed32)) piece.score = field.AsFloat();
    if (!field.Is(3, Kind::kVarint)) continue;
    if (field.value < 1 || field.value > 6) return absl::DataLossError("its type is unknown");
    piece.type = static_cast<PieceType>(field.value);
  }
  if (piece.text.empty()) return absl::DataLossError("it is empty");
  if (piece.text.size() >= kMostPieceBytes) {
    return absl::DataLossError(
        absl::StrCat("it has ", piece.text.size(), " bytes, of ", kMostPieceBytes - 1, " at most"));
  }
  if (!IsUtf8Text(piece.text)) return absl::DataLossError("it is not UTF-8");
  if (!std::isfinite(piece.score)) return absl::DataLossError("its score is not finite");
  return piece;
}

absl::Status Duplicate(const Piece& piece, int32_t one, int32_t other) {
  return absl::DataLossError(
      absl::StrCat("pieces ", one, " and ", other, " are both \"", ShownName(piece.text), "\""));
}

// Where each piece is, and that no two are alike.
absl::StatusOr<std::unordered_map<std::string_view, int32_t>> IdsOf(const ModelFile& model) {
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(model.pieces.size());
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const auto [there, fresh] = ids.emplace(model.pieces[i].text, id);
    if (!fresh) return Duplicate(model.pieces[i], there->second, id);
  }
  return ids;
}

absl::Status FindUnknown(ModelFile* model) {
  for (size_t i = 0; i < model->pieces.size(); ++i) {
    if (model->pieces[i].type != PieceType::kUnknown) continue;
    if (model->unknown >= 0) return absl::DataLossError("two of its pieces are the unknown one");
    model->unknown = static_cast<int32_t>(i);
  }
  return model->unknown >= 0 ? absl::OkStatus()
                             : absl::DataLossError("none of its pieces is the unknown one");
}

absl::Status FindBytes(ModelFile* model) {
  std::vector<int32_t> ids(256, -1);
  for (size_t i = 0; i < model->pieces.size(); ++i) {
    const Piece& piece = model->pieces[i];
    if (piece.type != PieceType::kByte) continue;
    const int byte = ByteOfPiece(piece.text);
    if (byte < 0 || !model->byte_fallback) {
      return absl::DataLossError(
          absl::StrCat("piece ", i, ", \"", ShownName(piece.text), "\", is no byte"));
    }
    ids[static_cast<size_t>(byte)] = static_cast<int32_t>(i);
  }
  if (!model->byte_fallback) return absl::OkStatus();
  for (size_t byte = 0; byte < ids.size(); ++byte) {
    if (ids[byte] < 0) {
      return absl::DataLossError(absl::StrFormat("it has no piece for the byte <0x%02X>", byte));
    }
  }
  model->byte_ids = std::move(ids);
  return absl::OkStatus();
}

absl::Status UseTrainer(TrainerPart trainer, ModelFile* model) {
  if (trainer.model_type != 1 && trainer.model_type != 2) {
    return absl::UnimplementedError(
        "its pieces are neither of kind unigram nor bpe; give a model of one of these");
  }
  model->kind = trainer.model_type == 1 ? TokenizerKind::kUnigram : TokenizerKind::kBpe;
  model->byte_fallback = trainer.byte_fallback;
  model->rules.space_is_suffix = trainer.space_is_suffix;
  if (!IsUtf8Text(trainer.unknown_text)) {
    return absl::DataLossError("the text of its unknown piece is not UTF-8");
  }
  model->unknown_text = std::move(trainer.unknown_text);
  ASSIGN_OR_RETURN(const auto ids, IdsOf(*model));
  const auto control = [&](const std::string& name) {
    const auto there = ids.find(name);
    const bool fits = there != ids.end() &&
                      model->pieces[static_cast<size_t>(there->second)].type == PieceType::kControl;
    return fits ? there->second : -1;
  };
  model->begin = control(trainer.begin);
  model->end = control(trainer.end);
  model->pad = control(trainer.pad);
  return absl::OkStatus();
}

// Rules for decoding: none that change a text are known here.
absl::Status CheckNoDenormalizer(std::string_view bytes) {
  NormalizerRules rules;
  RETURN_IF_ERROR(ReadRules(bytes, &rules));
  if (rules.characters.empty()) return absl::OkStatus();
  return absl::UnimplementedError("it changes texts after decoding; give a model that does not");
}

}  // namespace

int ByteOfPiece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  int byte = 0;
  for (const char digit : piece.substr(3, 2)) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'A' || digit > 'F')) return -1;
    byte = byte * 16 + (decimal ? digit - '0' : digit - 'A' + 10);
  }
  return byte;
}

absl::StatusOr<ModelFile> ParseModelFile(std::string_view bytes) {
  ModelFile model;
  TrainerPart trainer;
  bool has_trainer = false, has_rules = false;
  for (WireReader reader(bytes); !reader.done();) {
    ASSIGN_OR_RETURN(const WireReader::Field field, reader.Next());
    if (field.Is(1, Kind::kBytes)) {
      const std::string name = absl::StrCat("piece ", model.pieces.size());
      if (model.pieces.size() == kMostPieces) {
        return absl::DataLossError(absl::StrCat("it has more than ", kMostPieces, " pieces"));
      }
      ASSIGN_OR_RETURN(Piece piece, Annotate(ReadPiece(field.bytes), name));
      model.pieces.push_back(std::move(piece));
    }
    if (field.Is(2, Kind::kBytes)) RETURN_IF_ERROR(ReadTrainer(field.bytes, &trainer));
    if (field.Is(3, Kind::kBytes)) RETURN_IF_ERROR(ReadRules(field.bytes, &model.rules));
    if (field.Is(5, Kind::kBytes)) RETURN_IF_ERROR(CheckNoDenormalizer(field.bytes));
    has_trainer = has_trainer || field.Is(2, Kind::kBytes);
    has_rules = has_rules || field.Is(3, Kind::kBytes);
  }
  if (model.pieces.empty()) return absl::DataLossError("it has no pieces");
  // They stand behind the pieces: a file that was cut between two pieces shows by them alone.
  if (!has_trainer || !has_rules) return absl::DataLossError("it ends behind a piece");
  RETURN_IF_ERROR(UseTrainer(std::move(trainer), &model));
  RETURN_IF_ERROR(FindUnknown(&model));
  RETURN_IF_ERROR(FindBytes(&model));
  return model;
}

}  // namespace stagecoach
