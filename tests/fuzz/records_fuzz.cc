// What a coordinator finds on its disks when it starts: a checkpoint's manifest, a job's entry in
// the journal.
//
// The first byte says which. Of a manifest the digest at its end is made here: behind it stands
// what is tried.
#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "checkpoint/manifest.h"
#include "coordinator/job/job_json.h"
#include "coordinator/job/view/shown_json.h"
#include "services/common/convert/spec/job_spec_testing.h"
#include "services/coordinator/convert/convert_job.h"
#include "services/coordinator/convert/job_codec.h"
#include "services/coordinator/http/http_json.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

void ReadManifest(std::string text, bool with_digest) {
  if (with_digest) absl::StrAppend(&text, ",\"zz_sha256\":\"", Sha256Hex(text), "\"}");
  const absl::StatusOr<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return;
  CHECK(FormatManifest(*manifest) == text) << "one text for one manifest";
}

void ReadState(const std::string& text) {
  auto definition = std::make_shared<JobDefinition>();
  definition->id = "job-a";
  definition->spec = GptJob();
  JobState state = NewJobState(definition, 1, {});
  if (const absl::Status status = DecodeJobState(text, &state); !status.ok()) return;
  CheckShown(state.message);
  JobState again = NewJobState(definition, 1, {});
  const std::string written = EncodeJobState(state);
  CHECK_OK(DecodeJobState(written, &again));
  CHECK(EncodeJobState(again) == written) << written;
  const std::string shown = ToJson(ToProto(ViewOf(state)));
  CHECK(IsUtf8Text(shown)) << "a list of jobs";
}

void ReadSpecText(const std::string& text) {
  const ProtoJobCodec codec;
  const absl::StatusOr<JobSpec> spec = codec.Decode(text);
  if (!spec.ok()) return;
  const std::string written = codec.Encode(*spec);
  const absl::StatusOr<JobSpec> again = codec.Decode(written);
  CHECK_OK(again.status());
  CHECK(codec.Encode(*again) == written) << written;
}

void ReadShown(const std::string& text) {
  (void)DecodeShownPictures(text);
  const absl::StatusOr<v1::GetShownPicturesResponse> proto = ShownToProto({"", text}, false);
  if (proto.ok()) CHECK(IsUtf8Text(ToJson(*proto))) << text;
}

}  // namespace

void FuzzRecords(FuzzInput input) {
  const uint8_t which = input.Byte();
  const std::string text = input.Rest();
  switch (which % 5) {
    case 0:
      return ReadManifest(text, true);
    case 1:
      return ReadManifest(text, false);
    case 2:
      return ReadState(text);
    case 3:
      return ReadSpecText(text);
    case 4:
      return ReadShown(text);
  }
}

}  // namespace stagecoach

FUZZ_TARGET(records, FuzzRecords)
