// The command that compares translations with references.
#include <string>
#include <vector>

#include "services/cli/command_tree.h"

namespace stagecoach {

void AddScoreCommand(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("score", "Score translations with BLEU and chrF, as sacreBLEU does", RunScore);
  command
      ->add_option("hypotheses", options.hypotheses,
                   "translations, one a line; plain or gzip; - for standard input")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("references", options.references,
                   "translations by people, one a line; several files give several references")
      ->type_name("FILE")
      ->required();
  // One value each time: what stands behind it may be a file.
  command->add_option("--metric", options.metrics, "bleu or chrf; repeatable; default: both")
      ->check(CLI::IsMember({"bleu", "chrf"}))
      ->allow_extra_args(false);
  command
      ->add_option("--tokenize", options.tokenize, "of BLEU; none: words as they are in the files")
      ->check(CLI::IsMember({"13a", "none"}))
      ->capture_default_str();
  command->add_option("--width", options.digits, "digits behind the point of a score; json has all")
      ->check(CLI::Range(0, 15))
      ->capture_default_str();
}

}  // namespace stagecoach
