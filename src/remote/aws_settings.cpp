// file    := section*
// section := "[" name "]" (key "=" value)*     in `config` a profile's name is "profile NAME"

#include "remote/aws_settings.hpp"

#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/open_file.hpp"
#include "base/trimmed.hpp"

namespace speedo {

namespace {

using Section = std::map<std::string, std::string>;

constexpr std::size_t kSettingsBytesMax = std::size_t{1} << 20U;
constexpr const char* kDefaultProfile = "default";
constexpr std::string_view kBlanks = " \t\r";

// A section of a file; empty if there is no such file, or section.
Result<Section> read_section(const std::string& path, const std::string& name) {
  Section section;
  if (path.empty()) return section;
  auto text = read_unconfined_file(path, kSettingsBytesMax);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) return section;
    return std::move(text).error();
  }
  bool is_wanted = false;
  std::istringstream lines(*text);
  for (std::string whole; std::getline(lines, whole);) {
    const std::string_view line = trimmed(whole, kBlanks);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      is_wanted = line == "[" + name + "]";
    } else if (const std::size_t sign = line.find('=');
               is_wanted && sign != std::string_view::npos) {
      section[std::string(trimmed(line.substr(0, sign), kBlanks))] =
          trimmed(line.substr(sign + 1), kBlanks);
    }
  }
  return section;
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) return text;
  }
  return {};
}

// A file of AWS' tools: where a variable says, else in the home folder.
std::string settings_path(const LookUpVariable& variable, const std::string& name,
                          const std::string& file) {
  const std::string given = variable(name), home = variable("HOME");
  if (!given.empty()) return given;
  return home.empty() ? home : home + "/.aws/" + file;
}

Result<void> set_identity(const LookUpVariable& variable, const std::string& profile,
                          AwsSettings& settings) {
  std::string id = variable("AWS_ACCESS_KEY_ID"), secret = variable("AWS_SECRET_ACCESS_KEY"),
              token = variable("AWS_SESSION_TOKEN");
  std::string from = "the environment";
  if (id.empty() && secret.empty()) {
    from = settings_path(variable, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
    SPEEDO_ASSIGN(Section section, read_section(from, profile));
    id = section["aws_access_key_id"];
    secret = section["aws_secret_access_key"];
    token = section["aws_session_token"];
  }
  if (id.empty() != secret.empty()) {
    return config_error(fmt::format("S3: {} has an access key's {}, but not its {}", from,
                                    id.empty() ? "secret" : "id", id.empty() ? "id" : "secret"));
  }
  if (secret.size() > Secret::kBytesMax || token.size() > Secret::kBytesMax) {
    return config_error(
        fmt::format("S3: {} has a key of more than {} bytes", from, Secret::kBytesMax));
  }
  if (id.empty()) return {};
  settings.identity = AwsIdentity{.key_id = id,
                                  .secret = Secret(secret),
                                  .session_token = Secret(token),
                                  .region = settings.region};
  return {};
}

}  // namespace

std::string process_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::string() : value;
}

Result<AwsSettings> read_aws_settings(const LookUpVariable& variable) {
  const std::string profile = first_of({variable("AWS_PROFILE"), kDefaultProfile});
  SPEEDO_ASSIGN(Section config,
                read_section(settings_path(variable, "AWS_CONFIG_FILE", "config"),
                             profile == kDefaultProfile ? profile : "profile " + profile));
  AwsSettings settings;
  settings.region = first_of(
      {variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), config["region"], settings.region});
  settings.endpoint = first_of(
      {variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL"), config["endpoint_url"]});
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const bool is_web = settings.endpoint.empty() || settings.endpoint.starts_with("http://") ||
                      settings.endpoint.starts_with("https://");
  if (!is_web || settings.endpoint.find('@') != std::string::npos) {
    return config_error("AWS_ENDPOINT_URL is no http:// or https:// URI of a server");
  }
  SPEEDO_TRY(set_identity(variable, profile, settings));
  return settings;
}

}  // namespace speedo
