// The commands that use trained weights.
#include <string>
#include <vector>

#include "plan/job/job_spec.h"
#include "services/cli/command_tree.h"

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
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
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

void AddGenerate(CommandTree& tree) {
  const auto [command, options] =
      tree.Add("generate", "Write text with trained weights", RunGenerate);
  AddWeightOptions(command, "weights,--weights", &options.weights);
  command->add_option("--prompt", options.prompt, "text to go on from");
  command
      ->add_option("--tokenizer", options.tokenizer,
                   "the one that the job was trained with; default: where the job had it")
      ->type_name("PATH");
  command->add_option("--tokens", options.tokens, "how many to write")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--temperature", options.temperature, "0: always the likeliest")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "of the random choice")->capture_default_str();
}

}  // namespace

void AddWeightCommands(CommandTree& tree) {
  AddClassify(tree);
  AddSegment(tree);
  AddGenerate(tree);
}

}  // namespace stagecoach
