#pragma once

#include <functional>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "remote/http_client.hpp"

namespace speedo {

// How S3 is reached, as AWS' own tools find it: the variables AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION (AWS_DEFAULT_REGION), AWS_ENDPOINT_URL_S3
// (AWS_ENDPOINT_URL), AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE; else the
// profile in ~/.aws/credentials and ~/.aws/config. Nothing is sent for these.
struct AwsSettings {
  std::optional<AwsIdentity> identity;  // none: requests are not signed, as public buckets want
  std::string region = "us-east-1";
  std::string endpoint;  // without a slash at its end; empty: AWS' own
};

// The value of a variable, empty if there is none.
using LookUpVariable = std::function<std::string(const std::string& name)>;
std::string process_variable(const std::string& name);

// Errors: those of reading a file that is there; kConfig for half an identity, or an endpoint that
// is no http(s) URI.
Result<AwsSettings> read_aws_settings(const LookUpVariable& variable = process_variable);

}  // namespace speedo
