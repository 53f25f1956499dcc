// The commands of `stagecoach tokenizer`.
#include <cstdint>
#include <string>

#include "services/cli/command_tree.h"
#include "stage/tokens/model/piece.h"

namespace stagecoach {
namespace {

constexpr int64_t kMostTrainerThreads = 128;  // as SentencePiece takes

void AddTrain(CommandTree& tree, CLI::App* tokenizer) {
  const auto [command, options] =
      tree.Add("train", "Make a SentencePiece model of a text", RunTrainTokenizer, tokenizer);
  command->add_option("--input", options.inputs, "text files, UTF-8, plain or gzip")
      ->type_name("FILE")
      ->required();
  command->add_option("--output", options.output, "the new model")->type_name("PATH")->required();
  command->add_option("--vocabulary", options.vocabulary, "how many ids, special ones included")
      ->check(CLI::Range(int64_t{8}, static_cast<int64_t>(kMostPieces)))
      ->required();
  command->add_option("--model", options.model, "how pieces are found")
      ->check(CLI::IsMember({"unigram", "bpe"}))
      ->capture_default_str();
  command
      ->add_option("--character-coverage", options.character_coverage,
                   "share of the text's characters that become pieces")
      ->check(CLI::Range(0.98, 1.0))
      ->capture_default_str();
  command
      ->add_flag("--byte-fallback,!--no-byte-fallback", options.byte_fallback,
                 "other characters become bytes, 256 ids, and not the unknown id; default: on")
      ->default_str("");
  command->add_option("--user-symbols", options.user_symbols,
                      "texts that are always one id, as \"<2de>,<2fr>\"");
  command
      ->add_option("--threads", options.threads,
                   "of the training; the model's bytes depend on their number")
      ->check(CLI::Range(int64_t{1}, kMostTrainerThreads))
      ->capture_default_str();
  command->add_flag("--verbose", options.verbose, "show SentencePiece's own log");
}

void AddModel(CLI::App* command, TokenizerOptions* options) {
  command->add_option("model", options->model, "a SentencePiece model, or a tokenizer.json")
      ->type_name("PATH")
      ->required();
}

void AddFile(CLI::App* command, TokenizerOptions* options, const std::string& content) {
  command->add_option("file", options->file, content + "; default, and -: standard input")
      ->type_name("FILE");
}

void AddUses(CommandTree& tree, CLI::App* tokenizer) {
  {
    const auto [command, options] =
        tree.Add("show", "Print what a tokenizer is", RunShowTokenizer, tokenizer);
    AddModel(command, &options);
    command->add_option("--first", options.first, "so many of its pieces")
        ->check(CLI::Range(int64_t{0}, static_cast<int64_t>(kMostPieces)))
        ->capture_default_str();
  }
  {
    const auto [command, options] =
        tree.Add("encode", "Turn lines of text into lines of ids", RunEncode, tokenizer);
    AddModel(command, &options);
    AddFile(command, &options, "text, UTF-8, plain or gzip");
    command->add_flag("--pieces", options.pieces, "pieces in place of ids");
  }
  {
    const auto [command, options] =
        tree.Add("decode", "Turn lines of ids into lines of text", RunDecode, tokenizer);
    AddModel(command, &options);
    AddFile(command, &options, "lines of ids");
  }
}

}  // namespace

void AddTokenizerCommands(CommandTree& tree) {
  CLI::App* tokenizer =
      tree.app().add_subcommand("tokenizer", "Train a SentencePiece tokenizer, or use one");
  tokenizer->require_subcommand(1);
  AddTrain(tree, tokenizer);
  AddUses(tree, tokenizer);
}

}  // namespace stagecoach
