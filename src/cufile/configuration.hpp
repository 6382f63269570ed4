#pragma once
// The values of cufile.json in force: API over environment over file over default, each with its
// origin.

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cufile/keys.hpp"
#include "straightway/settings.hpp"

namespace straightway::cufile {

// What to say once about the configuration: a value that was not taken, or takes no effect.
struct Remark {
  bool error = false;      // the value was not taken; else: it takes no effect
  std::string key;         // "execution.max_io_threads"
  std::string what;        // "it must be 0 to 128, and is 200; 4 is used"
  std::string place = {};  // "/etc/cufile.json:3:7", or empty
  Origin origin = Origin::file;
  bool unknown = false;  // no key has this name

  std::string text() const {
    return (place.empty() ? key + " " : place + ": " + key + ": ") + what;
  }
};

class Configuration {
 public:
  Configuration();

  const Setting<KeyValue>& get(Key key) const { return values_[static_cast<std::size_t>(key)]; }
  bool flag(Key key) const { return std::get<bool>(get(key).value); }
  std::int64_t number(Key key) const { return std::get<std::int64_t>(get(key).value); }
  const std::string& text(Key key) const { return std::get<std::string>(get(key).value); }
  const Numbers& numbers(Key key) const { return std::get<Numbers>(get(key).value); }
  const Texts& texts(Key key) const { return std::get<Texts>(get(key).value); }

  // Takes the value unless a higher rank holds one. The value fits the key.
  void set(Key key, KeyValue value, Origin origin);
  // The text of a file; what does not fit is left at its default, with a remark. Text that is no
  // JSON is an error that names line and column.
  Result<void> read_file(std::string_view text, const std::string& name);
  // The value of each variable; one that does not fit is an error that names the variable.
  using Environment = std::function<std::optional<std::string>(const char* name)>;
  Result<void> read_environment(const Environment& environment);
  // Remarks on values that are set and change nothing here.
  void remark_effects();

  const std::vector<Remark>& remarks() const { return remarks_; }
  const std::string& file() const { return file_; }  // empty: none
  std::string log_path;                              // CUFILE_LOGFILE_PATH, or the API's
  bool log_switched_off = false;                     // that variable is set, and empty

  CufileSettings layer() const;

 private:
  void take(const KeyInfo& key, const struct JsonValue& json);

  std::array<Setting<KeyValue>, key_count> values_;
  std::vector<Remark> remarks_;
  std::string file_;
};

// The text of the first file of the documented order that can be read: CUFILE_ENV_PATH_JSON,
// /etc/cufile.json, /usr/local/cuda/gds/cufile.json. Empty where there is none.
struct FoundFile {
  std::string path;
  std::string text;
};
FoundFile find_file(const Configuration::Environment& environment, const std::string& root = "");

// File and environment, over what the API set.
Result<Configuration> load_configuration(const Configuration::Environment& environment,
                                         Configuration start = {}, const std::string& root = "");

}  // namespace straightway::cufile
