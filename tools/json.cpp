#include "json.hpp"

namespace straightway::tools {

Json to_json(const Error& error) {
  Json json = {{"kind", to_string(error.kind)},
               {"origin", to_string(error.origin)},
               {"code", error.code},
               {"attempted", error.attempted},
               {"path", error.path}};
  json["offset"] = error.offset ? Json(*error.offset) : Json(nullptr);
  json["why"] = error.why;
  json["advice"] = error.advice;
  json["message"] = error.message();
  return json;
}

Json parse_json(const std::string& text) {
  Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() ? Json(text) : parsed;
}

std::string dump(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace straightway::tools
