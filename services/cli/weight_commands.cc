// The commands that use trained weights.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/job/job_spec.h"
#include "services/cli/command_tree.h"
#include "services/cli/trained/line_groups.h"

namespace stagecoach {
namespace {

void AddWeightOptions(CLI::App* command, const std::string& name, WeightOptions* weights) {
  command
      ->add_option(name, weights->source,
                   "model.safetensors, or a folder: of exported weights, of a `local` run "
                   "(--state-dir), of a checkpoint (with --job-file); or the id of a cluster's job")
      ->type_name("JOB|PATH")
      ->required();
  command->add_option("--step", weights->step, "of a cluster's job; default: the newest")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--job-file", weights->job_file,
                   "the job that a checkpoint was trained by; a checkpoint has only numbers")
      ->type_name("FILE");
  command->add_option("--threads", weights->threads, "default: all cores")
      ->check(CLI::Range(int64_t{1}, kMaxStages));
}

void AddPictures(CLI::App* command, std::vector<std::string>* pictures) {
  command
      ->add_option("pictures", *pictures,
                   "JPEG, PNG, TIFF and WebP files; of a folder all of them below it")
      ->type_name("PATH")
      ->required();
}

void AddClassify(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("classify", "Tell what pictures show, with trained weights", RunClassify);
  AddWeightOptions(command, "--weights", &options.weights);
  command->add_option("--top", options.top, "so many classes of each picture, at most")
      ->check(CLI::Range(int64_t{1}, kMaxSteps))
      ->capture_default_str();
  AddPictures(command, &options.pictures);
}

void AddSegment(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("segment", "Write a mask for each picture, with trained weights", RunSegment);
  AddWeightOptions(command, "--weights", &options.weights);
  command->add_option("--out", options.out, "the folder of the masks, PNG files with a palette")
      ->type_name("DIR")
      ->required();
  AddPictures(command, &options.pictures);
}

// CLI::Range lets pass what is not a number.
CLI::Validator Between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        const bool inside =
            CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
        return inside ? std::string()
                      : absl::StrCat("\"", text, "\" is not in [", least, " - ", most, "]");
      },
      absl::StrCat("FLOAT in [", least, " - ", most, "]"));
}

void AddTokenizer(CLI::App* command, std::string* tokenizer) {
  command
      ->add_option("--tokenizer", *tokenizer,
                   "the one that the job was trained with; default: where the job had it")
      ->type_name("PATH");
}

void AddBatch(CLI::App* command, const std::string& what, const GroupSizes& usual, int64_t* batch) {
  command
      ->add_option("--batch", *batch,
                   absl::StrCat(what, "; default: an eighth of them, but ", usual.fewest, " to ",
                                usual.most))
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
}

void AddPrecision(CLI::App* command, std::optional<Precision>* precision) {
  command
      ->add_option_function<std::string>(
          "--precision",
          [precision](const std::string& name) {
            *precision = name == PrecisionName(Precision::kBfloat16) ? Precision::kBfloat16
                                                                     : Precision::kFloat32;
          },
          "bfloat16 takes half the memory for weights, and less time; default: float32 on this "
          "machine, on "
          "stages that of the job that trained")
      ->check(
          CLI::IsMember({PrecisionName(Precision::kFloat32), PrecisionName(Precision::kBfloat16)}));
}

void AddWritingStages(CLI::App* command, WritingStages* stages) {
  CLI::Option* const cluster =
      command
          ->add_option("--stages", stages->cluster,
                       "write on so many stages of the coordinator's cluster, as a job, and not on "
                       "this machine")
          ->check(CLI::Range(int64_t{1}, kMaxStages))
          ->excludes("--threads");
  command
      ->add_option("--local-stages", stages->local,
                   "write on so many stage processes, which the command starts on this machine")
      ->check(CLI::Range(int64_t{1}, kMaxStages))
      ->excludes(cluster);
}

void AddGenerate(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("generate", "Write text with trained weights", RunGenerate);
  AddWeightOptions(command, "weights,--weights", &options.weights);
  CLI::Option* const prompt = command->add_option("--prompt", options.prompt, "text to go on from");
  command
      ->add_option("--prompts", options.prompts,
                   "file of prompts, one a line; - for standard input")
      ->type_name("FILE")
      ->excludes(prompt);
  AddTokenizer(command, &options.tokenizer);
  AddPrecision(command, &options.weights.precision);
  command->add_option("--tokens", options.tokens, "how many to write")
      ->check(CLI::Range(int64_t{1}, kMaxSteps))
      ->capture_default_str();
  command->add_option("--temperature", options.temperature, "0: always the likeliest")
      ->check(Between(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--top-k", options.top_k, "choose among so many likeliest; 0: among all")
      ->check(CLI::Range(int64_t{0}, kMaxSteps))
      ->capture_default_str();
  command
      ->add_option("--top-p", options.top_p,
                   "choose among the fewest likeliest with this share of the probability")
      ->check(Between(1e-9, 1.0))
      ->capture_default_str();
  command
      ->add_option("--stop", options.stops,
                   "a token that ends the text: a piece of the tokenizer, or a byte; repeatable")
      ->type_name("TOKEN")
      ->allow_extra_args(false);
  command->add_option("--seed", options.seed, "of the random choice")
      ->check([](const std::string& text) {  // which would come out as a large number
        return text.starts_with('-') ? "Value must be >= 0" : "";
      })
      ->capture_default_str();
  AddBatch(command, "prompts that are continued together", kPromptGroups, &options.batch);
  AddWritingStages(command, &options.stages);
}

void AddTranslate(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("translate", "Translate sentences with trained weights", RunTranslate);
  AddWeightOptions(command, "weights,--weights", &options.weights);
  command
      ->add_option("input,--input", options.input,
                   "one sentence a line, plain or gzip; default: standard input")
      ->type_name("FILE");
  AddTokenizer(command, &options.tokenizer);
  AddPrecision(command, &options.weights.precision);
  command->add_option("--tag", options.tag, "of the language to translate into, as <2de>");
  command->add_option("--beam", options.beam, "hypotheses of each sentence; 1: greedy")
      ->check(CLI::Range(int64_t{1}, int64_t{64}))
      ->capture_default_str();
  command
      ->add_option("--length-penalty", options.length_penalty,
                   "alpha: above 0, longer translations score better")
      ->check(Between(0.0, 10.0))
      ->capture_default_str();
  command
      ->add_option("--tokens", options.tokens,
                   "most tokens of a translation; default: the network's target_context")
      ->check(CLI::Range(int64_t{1}, kMaxSteps));
  AddBatch(command, "sentences that are translated together", kSentenceGroups, &options.batch);
  AddWritingStages(command, &options.stages);
}

void AddPerplexity(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("perplexity", "Measure how well trained weights predict a text", RunPerplexity);
  AddWeightOptions(command, "weights,--weights", &options.weights);
  command->add_option("file", options.file, "the text")->type_name("FILE")->required();
  AddTokenizer(command, &options.tokenizer);
  AddPrecision(command, &options.weights.precision);
}

}  // namespace

void AddWeightCommands(CommandTree& tree) {
  AddClassify(tree);
  AddSegment(tree);
  AddGenerate(tree);
  AddTranslate(tree);
  AddPerplexity(tree);
}

}  // namespace stagecoach
