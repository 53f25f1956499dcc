#include "services/common/tls/certificate_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/file_text.h"
#include "base/testing/temporary_folder.h"
#include "services/common/tls/certificates_testing.h"
#include "services/common/tls/openssl_objects.h"
#include "services/common/tls/tls_check.h"
#include "services/common/tls/tls_expiry.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CertificateAuthorityTest : public ::testing::Test {
 protected:
  absl::StatusOr<CertificateAuthority> Open() { return CertificateAuthority::Open(Path("")); }
  std::string Path(const std::string& name) const { return folder_.File("certs/" + name); }

  absl::Status Issue(const std::string& entry, int days = 825) {
    const absl::StatusOr<CertificateAuthority> authority = Open();
    if (!authority.ok()) return authority.status();
    return authority->Issue(*ParseCertificateEntry(entry), days, std::nullopt);
  }
  TlsFlags FilesOf(const std::string& name) const {
    TlsFlags tls;
    tls.use_ssl = true;
    tls.server_cert = Path(name + "/tls.crt");
    tls.server_key = Path(name + "/tls.key");
    tls.root_cert = Path(name + "/ca.pem");
    return tls;
  }
  absl::Status Check(const TlsFlags& tls) const {
    const absl::StatusOr<TlsPems> pems = ReadPems(tls);
    return pems.ok() ? CheckIdentity(tls, *pems) : pems.status();
  }
  Owned<X509> Certificate(const std::string& name) const {
    const std::string pem = FileText(Path(name));
    return Owned<X509>(PEM_read_bio_X509(ReaderOf(pem).get(), nullptr, nullptr, nullptr));
  }
  static std::string Printed(X509* certificate) {
    const Owned<BIO> text(BIO_new(BIO_s_mem()));
    X509_print(text.get(), certificate);
    return TextIn(text);
  }
  int RightsOf(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(stat(Path(name).c_str(), &info), 0) << name;
    return info.st_mode & 07777;
  }
  // The error for the authority's files as they are, which leaves them so.
  std::string Refused() {
    const absl::Status status = Issue("stage-0");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_FALSE(std::filesystem::exists(Path("stage-0")));
    return std::string(status.message());
  }

  const TemporaryFolder folder_;
};

TEST_F(CertificateAuthorityTest, ACertificateOfEachRoleIsAcceptedByTheAuthority) {
  ASSERT_TRUE(Issue("coordinator=coordinator.svc,10.0.0.7").ok());
  ASSERT_TRUE(Issue("stage-0").ok());
  ASSERT_TRUE(Issue("user:ann").ok());
  ASSERT_TRUE(Issue("client").ok());
  for (const char* name : {"coordinator", "stage-0", "ann", "client"}) {
    const absl::Status checked = Check(FilesOf(name));
    EXPECT_TRUE(checked.ok()) << checked;
    const bool is_server = std::string(name) == "coordinator" || std::string(name) == "stage-0";
    const std::string text = Printed(Certificate(absl::StrCat(name, "/tls.crt")).get());
    EXPECT_THAT(text, HasSubstr("TLS Web Client Authentication"));
    EXPECT_EQ(text.find("TLS Web Server Authentication") != text.npos, is_server) << text;
    EXPECT_THAT(text, AllOf(HasSubstr("CA:FALSE"), HasSubstr("prime256v1"),
                            HasSubstr(absl::StrCat("O=Stagecoach, CN=", name))));
  }
  EXPECT_THAT(Printed(Certificate("ann/tls.crt").get()),
              HasSubstr("DNS:ann, DNS:localhost, IP Address:127.0.0.1, "
                        "URI:spiffe://stagecoach/user/ann"));
  const std::string pem = FileText(Path("coordinator/tls.crt"));
  for (const char* host : {"coordinator", "coordinator.svc", "10.0.0.7", "localhost"}) {
    EXPECT_TRUE(CertificateIsFor(pem, host)) << host;
  }
  EXPECT_FALSE(CertificateIsFor(pem, "stage-0"));
  EXPECT_THAT(Printed(Certificate("ca.pem").get()),
              AllOf(HasSubstr("CA:TRUE, pathlen:0"), HasSubstr("Certificate Sign, CRL Sign")));
}

TEST_F(CertificateAuthorityTest, KeysAreForTheirOwnerWhateverTheMaskOfTheProcess) {
  for (const mode_t mask : {0, 077}) {
    const mode_t before = umask(mask);
    const absl::Status issued = Issue("stage-0");
    umask(before);
    ASSERT_TRUE(issued.ok()) << issued;
    EXPECT_EQ(RightsOf(""), 0755);
    EXPECT_EQ(RightsOf("ca.key"), 0600);
    EXPECT_EQ(RightsOf("ca.pem"), 0644);
    EXPECT_EQ(RightsOf("stage-0"), 0700);
    EXPECT_EQ(RightsOf("stage-0/tls.key"), 0600);
    EXPECT_EQ(RightsOf("stage-0/tls.crt"), 0644);
    EXPECT_EQ(RightsOf("stage-0/ca.pem"), 0644);
    std::filesystem::remove_all(Path(""));
  }
}

TEST_F(CertificateAuthorityTest, AnAuthorityIsKeptAndACertificateOfThatNameIsReplaced) {
  ASSERT_TRUE(Issue("stage-0").ok());
  const std::string authority = FileText(Path("ca.pem")), key = FileText(Path("ca.key"));
  const std::string first = FileText(Path("stage-0/tls.crt"));
  // A folder of that name may have files of others, and other rights.
  folder_.Write("certs/stage-0/note", "mine");
  std::filesystem::permissions(Path("stage-0"), std::filesystem::perms(0750));
  EXPECT_FALSE(Open()->is_new());
  ASSERT_TRUE(Issue("stage-0").ok());
  EXPECT_EQ(FileText(Path("ca.pem")), authority);
  EXPECT_EQ(FileText(Path("ca.key")), key);
  EXPECT_NE(FileText(Path("stage-0/tls.crt")), first);
  EXPECT_TRUE(Check(FilesOf("stage-0")).ok());
  EXPECT_EQ(FileText(Path("stage-0/note")), "mine");
  EXPECT_EQ(RightsOf("stage-0"), 0750);
}

TEST_F(CertificateAuthorityTest, SerialNumbersAreRandomAndLong) {
  ASSERT_TRUE(Issue("stage-0").ok());
  ASSERT_TRUE(Issue("stage-1").ok());
  const Owned<X509> one = Certificate("stage-0/tls.crt"), other = Certificate("stage-1/tls.crt");
  EXPECT_NE(
      ASN1_INTEGER_cmp(X509_get0_serialNumber(one.get()), X509_get0_serialNumber(other.get())), 0);
  // 2^-55 is the chance of less.
  EXPECT_GT(ASN1_STRING_length(X509_get0_serialNumber(one.get())), 8);
}

TEST_F(CertificateAuthorityTest, AValidityBeginsAnHourAgoAndLastsItsDays) {
  ASSERT_TRUE(Issue("stage-0", 30).ok());
  const Owned<X509> made = Certificate("stage-0/tls.crt");
  int days = 0, seconds = 0;
  ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notBefore(made.get()));
  EXPECT_EQ(days, 0);
  EXPECT_NEAR(seconds, -3600, 120);
  ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(made.get()));
  EXPECT_NEAR(days * 86400.0 + seconds, 30 * 86400.0, 120);
}

TEST_F(CertificateAuthorityTest, ACertificateEndsBeforeItsAuthority) {
  ASSERT_TRUE(Issue("stage-0", CertificateAuthority::kMostDays).ok());
  const absl::Status status = Issue("stage-1", CertificateAuthority::kMostDays + 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("3652 days"), HasSubstr("want at most 365")));
  EXPECT_FALSE(std::filesystem::exists(Path("stage-1")));
}

TEST_F(CertificateAuthorityTest, FilesThatAreNotItsOwnAreNamedAndStay) {
  ASSERT_TRUE(Issue("other").ok());
  std::filesystem::rename(Path("ca.key"), Path("kept.key"));
  EXPECT_THAT(Refused(), AllOf(HasSubstr(Path("ca.key") + ": is missing beside"),
                               HasSubstr("name another folder")));
  std::filesystem::rename(Path("kept.key"), Path("ca.key"));
  std::filesystem::rename(Path("ca.pem"), Path("kept.pem"));
  EXPECT_THAT(Refused(), HasSubstr(Path("ca.pem") + ": is missing beside"));

  folder_.Write("certs/ca.pem", "no certificate");
  EXPECT_THAT(Refused(), HasSubstr(Path("ca.pem") + ": is no PEM certificate"));
  EXPECT_EQ(FileText(Path("ca.pem")), "no certificate");
  std::filesystem::copy_file(Path("other/tls.crt"), Path("ca.pem"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Refused(), HasSubstr(Path("ca.key") + ": does not belong to " + Path("ca.pem")));
  // A server's certificate with its key signs nothing that a peer would accept.
  std::filesystem::copy_file(Path("other/tls.key"), Path("ca.key"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Refused(), HasSubstr(Path("ca.pem") + ": is the certificate of no authority"));
  folder_.Write("certs/ca.key", "");
  EXPECT_THAT(Refused(), HasSubstr(Path("ca.key") + ": is no PEM private key"));
}

TEST_F(CertificateAuthorityTest, WhileAnAuthorityIsReplacedTheOneOfTheKeySigns) {
  ASSERT_TRUE(Issue("stage-0").ok());
  const std::string old = FileText(Path("ca.pem"));
  std::filesystem::remove_all(Path(""));
  ASSERT_TRUE(Issue("stage-0").ok());
  folder_.Write("certs/ca.pem", old + FileText(Path("ca.pem")));
  const absl::Status issued = Issue("stage-1");
  ASSERT_TRUE(issued.ok()) << issued;
  EXPECT_TRUE(Check(FilesOf("stage-1")).ok());
  EXPECT_THAT(FileText(Path("stage-1/ca.pem")), HasSubstr(old)) << "peers of both are accepted";
}

TEST_F(CertificateAuthorityTest, AFileInTheFoldersPlaceIsNamed) {
  folder_.Write("certs/ca", "");
  const absl::Status status = CertificateAuthority::Open(Path("ca")).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("ca") + ": is there and is no folder"));
  ASSERT_TRUE(Open().ok());
  folder_.Write("certs/stage-0", "");
  EXPECT_THAT(std::string(Issue("stage-0").message()), HasSubstr("is no folder"));
}

// The story: several runs on a new folder removed each other's files, and one that failed removed
// the key of another.
TEST_F(CertificateAuthorityTest, RunsAtOnceOnANewFolderShareOneAuthority) {
  constexpr int kRuns = 8;
  std::atomic<int> made = 0;
  std::vector<std::future<absl::Status>> runs;
  for (int i = 0; i < kRuns; ++i) {
    runs.push_back(std::async(std::launch::async, [&, i] {
      const absl::StatusOr<CertificateAuthority> authority = Open();
      if (!authority.ok()) return authority.status();
      made += authority->is_new();
      return authority->Issue(*ParseCertificateEntry(absl::StrCat("stage-", i)), 825, std::nullopt);
    }));
  }
  for (std::future<absl::Status>& run : runs) {
    const absl::Status status = run.get();
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(made, 1);
  for (int i = 0; i < kRuns; ++i) {
    TlsFlags files = FilesOf(absl::StrCat("stage-", i));
    files.root_cert = Path("ca.pem");
    const absl::Status checked = Check(files);
    EXPECT_TRUE(checked.ok()) << checked;
  }
}

TEST_F(CertificateAuthorityTest, ItHoldsItsFolderForItsLife) {
  {
    const absl::StatusOr<CertificateAuthority> first = Open();
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(FolderLock::Take(Path(""), std::chrono::milliseconds(0)).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(FolderLock::Take(Path(""), std::chrono::milliseconds(0)).ok());
}

TEST_F(CertificateAuthorityTest, AKeyThatItDidNotMakeIsNeitherReplacedNorRemoved) {
  // Links to nothing count as missing files.
  std::filesystem::create_directories(Path(""));
  std::filesystem::create_symlink(folder_.File("elsewhere"), Path("ca.key"));
  const absl::Status status = Open().status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("ca.key") + ": make: File exists"));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("ca.key")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("elsewhere")));
  EXPECT_FALSE(std::filesystem::exists(Path("ca.pem")));
}

TEST_F(CertificateAuthorityTest, AFolderOrAPipeInAFilesPlaceIsNamed) {
  ASSERT_TRUE(Open().ok());
  std::filesystem::remove(Path("ca.key"));
  ASSERT_EQ(mkfifo(Path("ca.key").c_str(), 0600), 0);
  EXPECT_THAT(Refused(), AllOf(HasSubstr(Path("ca.key") + ": is no regular file"),
                               HasSubstr("bring the right file")));
  std::filesystem::remove(Path("ca.key"));
  std::filesystem::create_directory(Path("ca.key"));
  EXPECT_THAT(Refused(), HasSubstr(Path("ca.key") + ": is no regular file"));
}

TEST_F(CertificateAuthorityTest, ACertificateOfAnotherRoleStays) {
  ASSERT_TRUE(Issue("user:x").ok());
  const std::string before = FileText(Path("x/tls.crt"));
  const absl::Status status = Issue("operator:x");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(Path("x") + ": has the certificate of the user x"),
                    HasSubstr("take another NAME, or remove the folder")));
  EXPECT_EQ(FileText(Path("x/tls.crt")), before);
  EXPECT_TRUE(Issue("user:x").ok());
  folder_.Write("certs/x/tls.crt", "no certificate");
  EXPECT_TRUE(Issue("operator:x").ok());
}

TEST_F(CertificateAuthorityTest, FilesOfAnInterruptedCommandAreRemoved) {
  ASSERT_TRUE(Issue("stage-0").ok());
  folder_.Write("certs/stage-0/tls.key.unfinished.abcdef", "half a k");
  ASSERT_TRUE(Issue("stage-0").ok());
  const std::filesystem::directory_iterator entries(Path("stage-0"));
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 3);
}

TEST_F(CertificateAuthorityTest, AFolderWithoutANameIsRefused) {
  const absl::Status status = CertificateAuthority::Open("").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("FOLDER is empty"));
}

TEST_F(CertificateAuthorityTest, OnlyRootGivesFilesAway) {
  if (geteuid() == 0) {
    ASSERT_TRUE(Open()->Issue(*ParseCertificateEntry("stage-0"), 825, 65532).ok());
    struct stat info {};
    for (const char* name : {"stage-0", "stage-0/tls.key", "stage-0/tls.crt", "stage-0/ca.pem"}) {
      ASSERT_EQ(stat(Path(name).c_str(), &info), 0);
      EXPECT_EQ(info.st_uid, 65532u) << name;
    }
    ASSERT_EQ(stat(Path("ca.key").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, geteuid()) << "the authority's key is for nobody else";
    // Again, over files of another user.
    EXPECT_TRUE(Open()->Issue(*ParseCertificateEntry("stage-0"), 825, 65532).ok());
    return;
  }
  const absl::Status status = Open()->Issue(*ParseCertificateEntry("stage-0"), 825, 65532);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
}

}  // namespace
}  // namespace stagecoach
