//! A compression dictionary for HTML and CSS, the W3C note's proposal (`papers/w3c#compression`): the elements and
//! attributes of HTML 3.2 and the properties of CSS1, as documents write them.
//!
//! Not trained on any page. The most frequent phrases are last, as in a preset dictionary of zlib (RFC 1950, section 2.2).

/// The dictionary.
pub const HTML_AND_CSS: &str = "\
    font-family: sans-serif; font-size: font-style: italic; font-weight: bold; font-variant: line-height: \
    letter-spacing: word-spacing: text-decoration: none; underline; text-transform: text-align: center; \
    vertical-align: text-indent: margin-top: margin-left: margin-right: margin-bottom: margin: padding: \
    border-width: border-color: border-style: solid; border: background-color: background-image: url(\
    background: color: white; black; #ffffff; display: block; inline; white-space: list-style-type: disc; \
    width: auto; height: float: left; clear: both; }\n<style type=\"text/css\">\n<!--\n-->\n</style>\n\
    <!doctype html public \"-//w3c//dtd html 3.2//en\">\n<html>\n<head>\n<title></title>\n<meta \
    http-equiv=\"content-type\" content=\"text/html; charset=iso-8859-1\">\n<meta name=\"keywords\" \
    <link rel=\"stylesheet\" <base href=\"<script language=\"javascript\"></script>\n</head>\n<body \
    bgcolor=\"#ffffff\" text=\"#000000\" link=\"#0000ff\" vlink=\"#800080\" alink=\"#ff0000\" \
    background=\"<h1></h1>\n<h2></h2>\n<h3></h3>\n<hr size=\"1\" noshade>\n<ul>\n<li></li>\n</ul>\n<ol>\
    </ol>\n<dl><dt><dd></dl>\n<pre></pre>\n<blockquote></blockquote>\n<address></address>\n<map \
    name=\"<area shape=\"rect\" coords=\"</map>\n<form method=\"post\" action=\"<input type=\"text\" \
    name=\"<input type=\"submit\" value=\"<input type=\"hidden\" <select name=\"<option \
    value=\"</select></form>\n<em></em><strong></strong><tt></tt><code></code><i></i><b></b><p \
    align=\"center\"><center></center>\n<br clear=\"all\">\n<img src=\"images/ .gif\" width=\"\" height=\"\" \
    border=\"0\" align=\"left\" alt=\"\">\n<font face=\"arial, helvetica\" size=\"2\" color=\"#</font>&nbsp;\
    &amp;&copy;<table border=\"0\" cellspacing=\"0\" cellpadding=\"2\" width=\"600\">\n<tr \
    valign=\"top\"><td align=\"left\"><td width=\"</b><br>\n</font></td></tr>\n<td><td colspan=\"2\" \
    bgcolor=\"#</td></tr>\n</table>\n</p>\n</body>\n</html>\n<p><a href=\"http://www. .com/<a href=\"/ \
    .htm\"> .html\"></a> </a>.<br>\n";
