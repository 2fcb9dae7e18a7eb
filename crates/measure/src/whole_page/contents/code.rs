//! Scripts and style sheets: code that loads an object, and what it makes known.

use page::Kind;

use super::{Builder, Edge, OWN_WORK, TooManyDependencies};

impl Builder<'_> {
    /// Body of a script: code for everything that it makes known.
    pub(super) fn script(&mut self, index: usize) -> Result<String, TooManyDependencies> {
        self.reactions(index, 0)
    }

    /// Body of a style sheet: its imports, fonts and images.
    pub(super) fn style_sheet(&mut self, index: usize) -> Result<String, TooManyDependencies> {
        let (mut imports, mut others) = (String::new(), String::new());
        for edge in self.edges[index].iter().filter(|edge| self.is_rule(edge)) {
            let (to, url) = (edge.to, self.reference(edge.to, index));
            match self.kind(to) {
                Kind::StyleSheet => imports += &format!("@import url(\"{url}\");"),
                Kind::Font => others += &format!("@font-face{{font-family:f{to};src:url(\"{url}\")}}"),
                _image => others += &format!(".i{to}{{background:url(\"{url}\")}}"),
            }
        }
        let text = imports + &others;
        self.count(&text)?;
        Ok(text)
    }

    /// Code that runs at the end of an object: loads what that makes known.
    pub(super) fn reactions(&mut self, index: usize, document: usize) -> Result<String, TooManyDependencies> {
        let is_style_sheet = self.kind(index) == Kind::StyleSheet;
        let edges = self.edges[index].iter().filter(|edge| !is_style_sheet || !self.is_rule(edge));
        self.play(edges.copied().collect(), document)
    }

    /// Code for dependencies that are met at the same moment: loads their objects, each after its delay since then.
    pub(super) fn play(
        &mut self,
        mut edges: Vec<Edge>,
        document: usize,
    ) -> Result<String, TooManyDependencies> {
        // Timers are set before the work begins.
        edges.sort_by_key(|edge| (self.is_work(edge), edge.dependency.plus));
        let mut code = String::new();
        for edge in &edges {
            code += &self.reaction(edge, document)?;
        }
        let has_work = edges.last().is_some_and(|edge| self.is_work(edge));
        Ok(if has_work { format!("{{let s=performance.now();{code}}}") } else { code })
    }

    /// Whether the delay of an edge is played as work of a script: a timer would not hold the event `load`.
    fn is_work(&self, edge: &Edge) -> bool {
        let holds_load = self.page.objects[edge.to].counts_for_load && self.kind(edge.to) != Kind::Data;
        edge.dependency.plus >= OWN_WORK && holds_load
    }

    /// Code for one dependency that is met: loads its object, after the delay, if no other dependency is missing.
    fn reaction(&mut self, edge: &Edge, document: usize) -> Result<String, TooManyDependencies> {
        let Edge { to, dependency } = *edge;
        let mut code = self.load(to, document)?;
        let count = self.waits_for(to);
        if count > 1 {
            code = format!("var c=window.c=window.c||{{}};if((c[{to}]=-~c[{to}])=={count}){{{code}}}");
        }
        let delay = dependency.plus.as_millis_f64();
        code = match (dependency.plus >= OWN_WORK, self.is_work(edge)) {
            (false, _) => format!("{{{code}}}"),
            (true, false) => format!("setTimeout(()=>{{{code}}},{delay:.0});"),
            (true, true) => format!("while(performance.now()<s+{delay:.0});{{{code}}}"),
        };
        self.count(&code)?;
        Ok(code)
    }

    /// Code that loads an object, and then what that makes known.
    fn load(&mut self, index: usize, document: usize) -> Result<String, TooManyDependencies> {
        let (kind, url) = (self.kind(index), self.reference(index, document));
        let then = match kind {
            // They run code of their own.
            Kind::Script | Kind::Document => String::new(),
            _ => self.reactions(index, document)?,
        };
        let on_end =
            if then.is_empty() { String::new() } else { format!("o.onload=o.onerror=()=>{{{then}}};") };
        let element = |name: &str, rest: &str| {
            format!("let o=document.createElement('{name}');{on_end}{rest};document.head.append(o);")
        };
        Ok(match kind {
            Kind::Script => element("script", &format!("o.src='{url}'")),
            Kind::StyleSheet => element("link", &format!("o.rel='stylesheet';o.href='{url}'")),
            Kind::Document => {
                let append = "document.documentElement.append(o);";
                format!("let o=document.createElement('iframe');o.src='{url}';{append}")
            }
            Kind::Image => format!("let o=new Image;{on_end}o.src='{url}';"),
            Kind::Font => {
                format!("new FontFace('f','url({url})').load().catch(()=>0).then(()=>{{{then}}});")
            }
            Kind::Media | Kind::Data | Kind::Other => {
                let options = self.options(index, document);
                format!("fetch('{url}'{options}).then(r=>r.arrayBuffer()).finally(()=>{{{then}}});")
            }
        })
    }

    /// Options of `fetch` for a request.
    fn options(&self, index: usize, document: usize) -> String {
        let object = &self.page.objects[index];
        let host = |index: usize| &self.page.hosts[self.page.objects[index].host].name;
        let mut options = Vec::new();
        if host(index) != host(document) && !object.is_anonymous {
            options.push("credentials:'include'".to_owned());
        }
        if object.method.name() == "POST" {
            options.push(format!("method:'POST',body:'.'.repeat({})", object.request_body.get()));
        }
        if options.is_empty() { String::new() } else { format!(",{{{}}}", options.join(",")) }
    }
}
