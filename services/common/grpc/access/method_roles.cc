#include "services/common/grpc/access/method_roles.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr char kDataApi[] = "stagecoach.v1.DataService";
constexpr char kFleetApi[] = "stagecoach.v1.FleetService";
constexpr char kHealthApi[] = "grpc.health.v1.Health";
constexpr char kJobApi[] = "stagecoach.v1.JobService";
constexpr char kLinkApi[] = "stagecoach.v1.LinkService";
constexpr char kSnapshotApi[] = "stagecoach.v1.SnapshotService";
constexpr char kStageApi[] = "stagecoach.v1.StageService";
constexpr char kStoreApi[] = "stagecoach.v1.StoreService";

constexpr RoleSet kOfStages = SetOf(PeerRole::kStage);
constexpr RoleSet kOfUsers = SetOf(PeerRole::kUser) | SetOf(PeerRole::kOperator);
constexpr RoleSet kOfCoordinators = SetOf(PeerRole::kCoordinator) | SetOf(PeerRole::kOperator);

constexpr MethodRoles kMethodTable[] = {
    // What the coordinator tells a stage; an operator may as well, by hand.
    {kStageApi, "LoadCell", kOfCoordinators},
    {kStageApi, "Run", kOfCoordinators},
    {kStageApi, "Abort", kOfCoordinators},
    {kStageApi, "WriteShard", kOfCoordinators},
    {kStageApi, "FindSnapshots", kOfCoordinators},
    {kStageApi, "ReleaseCell", kOfCoordinators},
    {kStageApi, "ProfileModel", kOfCoordinators},
    {kStageApi, "GetStatus", kOfCoordinators},
    {kStageApi, "GetStageTrace", kOfCoordinators},
    {kStageApi, "GetStageLogs", kOfCoordinators},
    // Between neighbours.
    {kLinkApi, "Exchange", kOfStages},
    {kSnapshotApi, "PutSnapshotPart", kOfStages},
    {kSnapshotApi, "GetSnapshotPart", kOfStages},
    // What makes a process a stage: it has to have the name in its certificate.
    {kFleetApi, "RegisterStage", kOfStages},
    {kFleetApi, "RenewLease", kOfStages},
    {kFleetApi, "ListStages", kOfUsers},
    {kJobApi, "SubmitJob", kOfUsers},
    {kJobApi, "GetJob", kOfUsers},
    {kJobApi, "ListJobs", kOfUsers},
    {kJobApi, "WatchJob", kOfUsers},
    {kJobApi, "CancelJob", kOfUsers},
    {kJobApi, "ResumeJob", kOfUsers},
    {kJobApi, "PlanJob", kOfUsers},
    {kJobApi, "ListCheckpoints", kOfUsers},
    {kJobApi, "RemoveCheckpoints", kOfUsers},
    {kJobApi, "RemoveJob", kOfUsers},
    {kJobApi, "ExportWeights", kOfUsers},
    {kJobApi, "GetRecordFiles", kOfUsers},
    {kJobApi, "GetTrace", kOfUsers},
    {kJobApi, "GetShownPictures", kOfUsers},
    {kJobApi, "ReadLogs", kOfUsers},
    {kDataApi, "PrepareUpload", kOfUsers},
    {kDataApi, "PutDataSet", kOfUsers},
    {kDataApi, "ListDataSets", kOfUsers},
    {kDataApi, "OpenDataSet", kOfUsers},
    {kDataApi, "RemoveDataSet", kOfUsers},
    // Everybody needs a grant for the object's folder as well. Users write parts of data sets.
    {kStoreApi, "FindObject", kOfStages | kOfUsers},
    {kStoreApi, "ReadObject", kOfStages | kOfUsers},
    {kStoreApi, "WriteObject", kOfStages | kOfUsers},
    {kStoreApi, "RemoveObject", kOfStages},
    {kStoreApi, "LocateObject", kOfStages | kOfUsers},
    {kStoreApi, "CompleteObject", kOfStages | kOfUsers},
    // Probes come with the certificate that is at hand where they run.
    {kHealthApi, "Check", 0, true},
    {kHealthApi, "Watch", 0, true},
    {"grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo", kOfUsers},
    {"grpc.reflection.v1.ServerReflection", "ServerReflectionInfo", kOfUsers},
};

std::vector<std::string> NamesOfRoles(RoleSet roles) {
  std::vector<std::string> names;
  for (const PeerRole role : kPeerRoles) {
    if ((roles & SetOf(role)) != 0) names.emplace_back(PeerRoleName(role));
  }
  return names;
}

// "SubmitJob of stagecoach.v1.JobService is for the role user or operator".
std::string WhoMay(const MethodRoles& method) {
  return absl::StrCat(method.method_name(), " of ", method.service_name(), " is for the role ",
                      absl::StrJoin(NamesOfRoles(method.roles), " or "));
}

std::string MakeCertificate(const MethodRoles& method) {
  return absl::StrCat("stagecoach certs FOLDER ", NamesOfRoles(method.roles).front(), ":NAME");
}

std::string Whose(const Caller& caller) {
  if (caller.common_name.empty()) return "the caller's certificate";
  return absl::StrCat("the caller's certificate (CN ", ShownName(caller.common_name), ")");
}

}  // namespace

std::string MethodRoles::path() const {
  return absl::StrCat("/", service_name(), "/", method_name());
}

std::span<const MethodRoles> AllMethodRoles() { return kMethodTable; }

const MethodRoles* FindMethodRoles(std::string_view path) {
  if (!path.starts_with('/')) return nullptr;
  path.remove_prefix(1);
  const size_t slash = path.find('/');
  if (slash == path.npos) return nullptr;
  for (const MethodRoles& row : kMethodTable) {
    if (row.service == path.substr(0, slash) && row.method == path.substr(slash + 1)) return &row;
  }
  return nullptr;
}

const char* RoleLabel(const Caller& caller) {
  return caller.identity.ok() ? PeerRoleName(caller.identity->role) : "none";
}

absl::Status CheckCall(std::string_view path, const Caller& caller, bool any_certificate) {
  const MethodRoles* const method = FindMethodRoles(path);
  if (method == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(ShownName(path.substr(0, 200)), ": this version has no such method"));
  }
  if (absl::IsUnauthenticated(caller.identity.status())) return caller.identity.status();
  if (method->any_certificate) return absl::OkStatus();
  if (caller.identity.ok()) {
    const PeerIdentity& who = *caller.identity;
    if ((method->roles & SetOf(who.role)) != 0) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat(WhoMay(*method), ", and the caller is ", PeerRoleName(who.role), " ", who.name,
                     caller.by_token ? " by its token" : " by its certificate",
                     ": call with a certificate of that role (", MakeCertificate(*method), ")"));
  }
  if (absl::IsNotFound(caller.identity.status())) {
    if (any_certificate) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(
        WhoMay(*method), ", and ", Whose(caller), " names no role: make it anew (",
        MakeCertificate(*method),
        "), or start this server with --any-certificate-i-know until every peer has a new one"));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      WhoMay(*method), ", and the role of ", Whose(caller), " cannot be read: ",
      caller.identity.status().message(), "; make it anew (", MakeCertificate(*method), ")"));
}

}  // namespace stagecoach
