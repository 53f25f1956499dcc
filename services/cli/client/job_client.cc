#include "services/cli/client/job_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "services/common/convert/clean_texts.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_status.h"
#include "services/common/process/dial_address.h"
#include "services/common/tls/tls_check.h"
#include "stage/link/grpc/channel_arguments.h"
#include "stagecoach/v1/fleet.grpc.pb.h"
#include "stagecoach/v1/job.grpc.pb.h"

namespace stagecoach {
namespace {

// A stream that lives longer is opened anew from the last record: so it too has a deadline.
constexpr std::chrono::minutes kLongestStream(10);
// Verifying and exporting read every byte of a checkpoint; removing waits for what reads it.
constexpr double kReadingTimeoutSeconds = 600;
// All spans that the stages still hold may be many.
constexpr int kLargestAnswer = 64 << 20;
constexpr int kPageJobs = 1000;

std::shared_ptr<grpc::Channel> MakeApiChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  // A coordinator that was restarted is found again within a second.
  SetCommonArguments(&arguments);
  arguments.SetMaxReceiveMessageSize(kLargestAnswer);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

void SetDeadline(grpc::ClientContext* context, double seconds) {
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::system_clock::duration>(
                            std::chrono::duration<double>(seconds)));
}

class GrpcJobClient final : public JobClient {
 public:
  using Dial = std::function<std::shared_ptr<grpc::Channel>()>;
  GrpcJobClient(const ClientOptions& options, const Dial& dial)
      : GrpcJobClient(options, dial, dial()) {}
  GrpcJobClient(const ClientOptions& options, const Dial& dial,
                const std::shared_ptr<grpc::Channel>& channel)
      : options_(options),
        dial_(dial),
        jobs_(v1::JobService::NewStub(channel)),
        fleet_(v1::FleetService::NewStub(channel)),
        data_(MakeDataClient(channel, dial, options.address, options.timeout_seconds)) {}

  absl::StatusOr<v1::Job> Submit(const std::string& id, const v1::JobSpec& spec) override {
    v1::SubmitJobRequest request;
    request.set_id(id);
    *request.mutable_spec() = spec;
    v1::SubmitJobResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return jobs_->SubmitJob(context, request, &response);
    }));
    return std::move(*response.mutable_job());
  }

  absl::StatusOr<v1::Job> Get(const std::string& id) override {
    return GetJob(id, /*with_usage=*/false);
  }

  absl::StatusOr<v1::Job> GetWithUsage(const std::string& id) override {
    return GetJob(id, /*with_usage=*/true);
  }

  absl::StatusOr<v1::ListJobsResponse> List() override {
    v1::ListJobsRequest request;
    request.set_page_size(kPageJobs);
    v1::ListJobsResponse all;
    while (true) {
      v1::ListJobsResponse page;
      RETURN_IF_ERROR(Call(&page, [&](grpc::ClientContext* context) {
        return jobs_->ListJobs(context, request, &page);
      }));
      all.mutable_jobs()->MergeFrom(page.jobs());
      // One that repeats itself would keep us for ever.
      if (page.next_page_token().empty() || page.next_page_token() == request.page_token()) {
        return all;
      }
      request.set_page_token(page.next_page_token());
    }
  }

  absl::StatusOr<v1::Job> Cancel(const std::string& id) override {
    v1::CancelJobRequest request;
    request.set_id(id);
    v1::CancelJobResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return jobs_->CancelJob(context, request, &response);
    }));
    return std::move(*response.mutable_job());
  }

  absl::StatusOr<v1::ResumeJobResponse> Resume(const std::string& id, int64_t stages) override {
    v1::ResumeJobRequest request;
    request.set_id(id);
    request.set_stages(stages);
    v1::ResumeJobResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return jobs_->ResumeJob(context, request, &response);
    }));
    return response;
  }

  absl::StatusOr<v1::PlanJobResponse> Plan(const v1::JobSpec& spec) override {
    v1::PlanJobRequest request;
    *request.mutable_spec() = spec;
    v1::PlanJobResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return jobs_->PlanJob(context, request, &response);
    }));
    return response;
  }

  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(const std::string& job,
                                                              bool verify) override {
    v1::ListCheckpointsRequest request;
    request.set_job_id(job);
    request.set_verify(verify);
    v1::ListCheckpointsResponse response;
    RETURN_IF_ERROR(CallWithin(verify ? kReadingTimeoutSeconds : options_.timeout_seconds,
                               &response, [&](grpc::ClientContext* context) {
                                 return jobs_->ListCheckpoints(context, request, &response);
                               }));
    return response;
  }

  absl::StatusOr<v1::RemoveCheckpointsResponse> RemoveCheckpoints(
      const v1::RemoveCheckpointsRequest& request) override {
    v1::RemoveCheckpointsResponse response;
    RETURN_IF_ERROR(
        CallWithin(kReadingTimeoutSeconds, &response, [&](grpc::ClientContext* context) {
          return jobs_->RemoveCheckpoints(context, request, &response);
        }));
    return response;
  }

  absl::StatusOr<v1::RemoveJobResponse> RemoveJob(const std::string& id) override {
    v1::RemoveJobRequest request;
    request.set_id(id);
    v1::RemoveJobResponse response;
    RETURN_IF_ERROR(
        CallWithin(kReadingTimeoutSeconds, &response, [&](grpc::ClientContext* context) {
          return jobs_->RemoveJob(context, request, &response);
        }));
    return response;
  }

  absl::StatusOr<v1::ExportWeightsResponse> Export(const std::string& job, int64_t step,
                                                   bool average) override {
    v1::ExportWeightsRequest request;
    request.set_average(average);
    request.set_job_id(job);
    if (step >= 0) request.set_step(step);
    v1::ExportWeightsResponse response;
    RETURN_IF_ERROR(
        CallWithin(kReadingTimeoutSeconds, &response, [&](grpc::ClientContext* context) {
          return jobs_->ExportWeights(context, request, &response);
        }));
    return response;
  }

  absl::Status Fetch(const v1::ExportWeightsResponse& exported, const std::string& folder,
                     const OnFetched& on_fetched, StopSignal* stop) override {
    // Shared with the callback, which may still run when this function has returned.
    const auto store = std::make_shared<StoreClient>(StoreClient::Options{.dial = dial_});
    const StopSignal::Registration on_stop(stop, [store] { store->Shutdown(); });
    return FetchExport(*store, exported, *PosixFileSystem(), folder, on_fetched);
  }

  absl::StatusOr<v1::GetRecordFilesResponse> RecordFiles(const std::string& job) override {
    v1::GetRecordFilesRequest request;
    request.set_job_id(job);
    v1::GetRecordFilesResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return jobs_->GetRecordFiles(context, request, &response);
    }));
    return response;
  }

  absl::Status FetchRecords(const v1::GetRecordFilesResponse& records, const std::string& folder,
                            const OnFetched& on_fetched, StopSignal* stop) override {
    const auto store = std::make_shared<StoreClient>(StoreClient::Options{.dial = dial_});
    const StopSignal::Registration on_stop(stop, [store] { store->Shutdown(); });
    return ::stagecoach::FetchRecords(*store, records, *PosixFileSystem(), folder, on_fetched);
  }

  DataClient& data() override { return *data_; }

  absl::StatusOr<v1::ListStagesResponse> ListStages() override {
    v1::ListStagesResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return fleet_->ListStages(context, v1::ListStagesRequest(), &response);
    }));
    return response;
  }

  absl::StatusOr<v1::GetTraceResponse> GetTrace(const std::string& job, uint32_t steps) override {
    v1::GetTraceRequest request;
    request.set_job_id(job);
    request.set_steps(steps);
    v1::GetTraceResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return jobs_->GetTrace(context, request, &response);
    }));
    return response;
  }

  absl::Status Watch(const std::string& id, uint64_t after,
                     const std::function<void(const v1::WatchJobResponse&)>& on_record,
                     StopSignal* stop) override {
    v1::WatchJobRequest request;
    request.set_id(id);
    request.set_after(after);
    return ReadStream<v1::WatchJobResponse>(
        [&](grpc::ClientContext* context) { return jobs_->WatchJob(context, request); }, on_record,
        stop);
  }

  absl::Status ReadLogs(const v1::ReadLogsRequest& request,
                        const std::function<void(const v1::ReadLogsResponse&)>& on_lines,
                        StopSignal* stop) override {
    return ReadStream<v1::ReadLogsResponse>(
        [&](grpc::ClientContext* context) { return jobs_->ReadLogs(context, request); }, on_lines,
        stop);
  }

 private:
  absl::StatusOr<v1::Job> GetJob(const std::string& id, bool with_usage) {
    v1::GetJobRequest request;
    request.set_id(id);
    request.set_with_usage(with_usage);
    v1::GetJobResponse response;
    RETURN_IF_ERROR(Call(&response, [&](grpc::ClientContext* context) {
      return jobs_->GetJob(context, request, &response);
    }));
    return std::move(*response.mutable_job());
  }

  template <typename Message, typename Open>
  absl::Status ReadStream(const Open& open, const std::function<void(const Message&)>& on_message,
                          StopSignal* stop) {
    // Shared with the callback, which may still run when this function has returned.
    const auto context = std::make_shared<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + kLongestStream);
    const std::unique_ptr<grpc::ClientReader<Message>> reader = open(context.get());
    const StopSignal::Registration on_stop(stop, [context] { context->TryCancel(); });
    Message message;
    while (reader->Read(&message)) {
      CleanTexts(&message);
      on_message(message);
    }
    return Named(reader->Finish());
  }

  template <typename F>
  absl::Status CallWithin(double seconds, google::protobuf::Message* response, const F& call) {
    grpc::ClientContext context;
    SetDeadline(&context, seconds);
    const grpc::Status status = call(&context);
    CleanTexts(response);
    return Named(status);
  }

  template <typename F>
  absl::Status Call(google::protobuf::Message* response, const F& call) {
    return CallWithin(options_.timeout_seconds, response, call);
  }

  // gRPC's own words for a coordinator that is not there name no address that a user typed.
  absl::Status Named(const grpc::Status& status) const {
    absl::Status error = FromGrpc(status);
    if (!absl::IsUnavailable(error) && !absl::IsDeadlineExceeded(error)) return error;
    return Annotate(WithTlsReason(error, options_.address, options_.tls),
                    absl::StrCat("coordinator ", options_.address));
  }

  const ClientOptions options_;
  const Dial dial_;
  const std::unique_ptr<v1::JobService::Stub> jobs_;
  const std::unique_ptr<v1::FleetService::Stub> fleet_;
  const std::unique_ptr<DataClient> data_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobClient>> ConnectJobClient(const ClientOptions& options) {
  RETURN_IF_ERROR(options.problem);
  RETURN_IF_ERROR(CheckDialAddress("--address", options.address));
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials =
      MakeChannelCredentials(options.tls);
  if (!options.cluster.empty()) credentials = Annotate(std::move(credentials), options.cluster);
  // NOT_FOUND is a job's that is not there, and ends a script with another code.
  if (absl::IsNotFound(credentials.status())) {
    return absl::InvalidArgumentError(credentials.status().message());
  }
  RETURN_IF_ERROR(credentials.status());
  return std::make_unique<GrpcJobClient>(options,
                                         [address = options.address, credentials = *credentials] {
                                           return MakeApiChannel(address, credentials);
                                         });
}

}  // namespace stagecoach
